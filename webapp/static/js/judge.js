// The editor of a judge: a variable goes where the cursor was last in a template, and a trial comes into view.

/** Puts `text` in place of what is selected in `area`, so that one undo takes it out again. */
function insert(area, text) {
  area.focus();
  if (!document.execCommand("insertText", false, text)) {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  }
}

const form = document.querySelector("[data-judge-form]");
if (form) {
  const areas = [...form.querySelectorAll("[data-template]")];
  let last = areas.at(-1);
  for (const area of areas) area.addEventListener("focus", () => (last = area));
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-variable]");
    if (button && last) insert(last, `{{${button.dataset.variable}}}`);
  });
  // it starts below the whole form, a page away from the button
  const place = document.getElementById("trial");
  place?.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.requestConfig?.verb === "post") place.scrollIntoView({ block: "start" });
  });
}
