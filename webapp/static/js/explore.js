// Explore: bars show their counts, arrows move over them, Shift selects a range, and `/` goes to the search.
import { register } from "./keys.js";

const ends = (range) => range.split("..");
const lower = (range) => Number(ends(range)[0]);

/** The range from the lower end of the lower bar to the upper end of the upper bar, in any order. */
export function joined(one, other) {
  const [first, last] = lower(one) <= lower(other) ? [one, other] : [other, one];
  return `${ends(first)[0]}..${ends(last)[1]}`;
}

function say(bar) {
  bar.closest(".spread").querySelector("output").textContent = bar.getAttribute("aria-label").replace(/^[^\d-]*/, "");
}

function go(bar) {
  const spread = bar.closest(".spread");
  const chosen = new URL(location.href);
  const before = chosen.searchParams.get(spread.dataset.spread);
  if (!before) return false;
  chosen.searchParams.set(spread.dataset.spread, joined(before, bar.dataset.range));
  chosen.searchParams.delete("cursor");
  location.assign(chosen);
  return true;
}

const page = document.querySelector("[data-explore]");
if (page) {
  for (const kind of ["pointerover", "focusin"])
    page.addEventListener(kind, (event) => event.target.closest?.(".bar") && say(event.target.closest(".bar")));
  page.addEventListener("click", (event) => {
    const bar = event.target.closest?.(".bar");
    if (bar && event.shiftKey && go(bar)) event.preventDefault();
  });
  page.addEventListener("keydown", (event) => {
    const bar = event.target.closest?.(".bar");
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!bar || !step) return;
    const bars = [...bar.closest("svg").querySelectorAll(".bar")];
    const next = bars[bars.indexOf(bar) + step];
    if (!next) return;
    bar.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
    event.preventDefault();
  });
  const side = page.querySelector(".explore-side");
  if (matchMedia("(max-width: 60rem)").matches) side.removeAttribute("open");
  const search = page.querySelector("[data-search]");
  register("/", "Search the examples", () => {
    search.focus();
    search.select();
  });
  register("f", "Show or hide the filters", () => side.toggleAttribute("open"));
}
