// The editor of a report: a preview that follows the text, buttons that insert blocks, and links to wrong lines.
import { renderMath } from "./math.js";
import { register } from "./keys.js";
import { draw } from "./reportcharts.js";

const form = document.getElementById("report-form");
const text = document.getElementById("body");
const preview = document.getElementById("report-preview");
const fields = [...form.querySelectorAll("input:not([type=hidden]), textarea, select")];
const saved = new Map(fields.map((field) => [field, field.value]));
let sending = false;

const written = () => fields.some((field) => field.value !== saved.get(field)) || "unsaved" in form.dataset;

/** A block that has not changed keeps its chart, so that typing elsewhere does not load it again. */
function keep(before) {
  for (const place of preview.querySelectorAll("[data-report-chart]")) {
    const old = before.find((each) => each.dataset.reportChart === place.dataset.reportChart);
    if (!old) continue;
    before.splice(before.indexOf(old), 1);
    if (old.nextElementSibling?.matches(".report-live")) place.after(old.nextElementSibling);
    place.replaceWith(old);
  }
}

let kept = [];
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target === preview) kept = [...preview.querySelectorAll("[data-report-chart]")];
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target !== preview) return;
  keep(kept);
  draw(preview);
  renderMath(preview);
});

/** Selects a line of the text, and scrolls to it. */
function show(number) {
  const lines = text.value.split("\n");
  const start = lines.slice(0, number - 1).reduce((sum, each) => sum + each.length + 1, 0);
  text.focus();
  text.setSelectionRange(start, start + (lines[number - 1] ?? "").length);
  text.scrollTop = Math.max(0, (text.scrollHeight / lines.length) * (number - 4));
}

document.addEventListener("click", (event) => {
  const line = event.target.closest("[data-line]");
  if (line) show(Number(line.dataset.line));
  const block = event.target.closest("[data-block]");
  if (block) insert(block.dataset.block);
});

/** Inserts a block as if it had been typed, so that the browser's undo removes it. */
function insert(block) {
  const before = text.value.slice(0, text.selectionEnd);
  const gap = before === "" || before.endsWith("\n\n") ? "" : before.endsWith("\n") ? "\n" : "\n\n";
  text.focus();
  text.setSelectionRange(text.selectionEnd, text.selectionEnd);
  if (!document.execCommand("insertText", false, `${gap}${block}\n\n`)) text.setRangeText(`${gap}${block}\n\n`, text.selectionEnd, text.selectionEnd, "end");
  text.dispatchEvent(new Event("input", { bubbles: true }));
}

addEventListener("beforeunload", (event) => written() && !sending && event.preventDefault());
form.addEventListener("submit", (event) => {
  if (sending) event.preventDefault(); // a double click would write a new report twice
  sending = true;
});
addEventListener("pageshow", () => (sending = false));
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
register("e", "Edit the text", () => text.focus());
draw(document);
renderMath(preview);
