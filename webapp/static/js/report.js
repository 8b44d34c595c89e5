// A report as it is read: its charts and formulas.
import { renderMath } from "./math.js";
import { draw } from "./reportcharts.js";

const charts = draw(document);

/** Paper is light, and narrower than most windows, so charts are drawn for it before the browser lays out the page. */
const look = document.documentElement;
let theme = null;
addEventListener("beforeprint", () => {
  theme = look.dataset.theme ?? null;
  look.dataset.theme = "light";
  look.classList.add("is-printing");
  for (const each of charts) each.fit();
});
addEventListener("afterprint", () => {
  if (theme === null) delete look.dataset.theme;
  else look.dataset.theme = theme;
  look.classList.remove("is-printing");
  for (const each of charts) each.fit();
});
document.querySelector("[data-print]")?.addEventListener("click", () => print());
renderMath(document.getElementById("report"));
