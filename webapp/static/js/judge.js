// The editor of a judge: a variable is inserted where the cursor was last in a template, and a trial is scrolled into view.

/** Replaces the selection in `area` by `text`, so that one undo removes it again. */
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
  // it starts below the form, a page away from the button
  const place = document.getElementById("trial");
  place?.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.requestConfig?.verb === "post") place.scrollIntoView({ block: "start" });
  });
}
