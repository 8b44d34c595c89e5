// The tokens of a response one by one: under the pointer, or with the arrow keys, a line below says the token and its value. With Shift, or
// with the pointer pressed, several are chosen: `text` then gets the event "tokens:chosen", and "tokens:note" after Enter.
import { make } from "./format.js";

const visible = (token) => token.replaceAll("\n", "⏎").replaceAll("\t", "⇥") || "(empty)";

/** Makes the spans of `text` (with `data-token`) walkable. `name` says whose tokens they are. Returns the line that says the token. */
export function walkable(text, name) {
  const spans = [...text.querySelectorAll("[data-token]")];
  const told = make("p", "tiny muted num token-told");
  if (!spans.length) return told;
  const walk = { spans, told, text, at: -1, from: -1 };
  told.setAttribute("aria-live", "polite");
  text.classList.remove("clamp", "lines-16");
  text.classList.add("is-walked");
  text.tabIndex = 0;
  text.setAttribute("role", "group");
  text.setAttribute("aria-label", `${name}, token by token: the arrow keys go from one to the next, with Shift they choose several`);
  text.addEventListener("keydown", (event) => pressed(walk, event));
  text.addEventListener("blur", () => go(walk, -1));
  text.addEventListener("pointermove", (event) => say(walk, tokenUnder(event) ?? walk.at));
  text.addEventListener("pointerleave", () => say(walk, walk.at));
  text.addEventListener("pointerdown", (event) => dragged(walk, tokenUnder(event)));
  return told;
}

function say({ spans, told }, i) {
  const value = spans[i]?.title;
  told.textContent = i < 0 ? "" : `Token ${i + 1} of ${spans.length}, “${visible(spans[i].textContent)}”${value ? `: ${value}` : ""}`;
}

function go(walk, to) {
  walk.spans[walk.at]?.classList.remove("is-at");
  walk.at = to;
  walk.spans[to]?.classList.add("is-at");
  walk.spans[to]?.scrollIntoView({ block: "nearest" });
  say(walk, to);
}

function pressed(walk, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target !== walk.text) return;
  if (event.key === "Enter" && walk.at >= 0) {
    event.preventDefault();
    choose(walk, ...(walk.from >= 0 ? [walk.from, walk.at] : [walk.at, walk.at]));
    walk.text.dispatchEvent(new CustomEvent("tokens:note"));
    return;
  }
  const last = walk.spans.length - 1;
  const to = { ArrowRight: walk.at + 1, ArrowLeft: walk.at - 1, Home: 0, End: last }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  if (event.shiftKey && walk.from < 0) walk.from = Math.max(walk.at, 0);
  if (!event.shiftKey) walk.from = -1;
  go(walk, Math.max(0, Math.min(to, last)));
  if (walk.from >= 0) choose(walk, walk.from, walk.at);
}

const tokenUnder = ({ target }) => (target.closest?.("[data-token]") ? Number(target.closest("[data-token]").dataset.token) : undefined);

/** From the pressed token to the token under the pointer, until the pointer is released. */
function dragged(walk, from) {
  if (from === undefined) return;
  const gesture = new AbortController();
  const extend = (event) => {
    const to = walk.text.contains(event.target) ? tokenUnder(event) : undefined;
    if (to !== undefined) choose(walk, from, to);
  };
  document.addEventListener("pointermove", extend, { signal: gesture.signal });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => gesture.abort(), { signal: gesture.signal });
}

function choose({ text, told, spans }, one, other) {
  const [start, end] = [Math.min(one, other), Math.max(one, other) + 1];
  told.textContent = end - start > 1 ? `Tokens ${start + 1} to ${end} of ${spans.length}` : told.textContent;
  text.dispatchEvent(new CustomEvent("tokens:chosen", { detail: { start, end } }));
}
