// Problems that prevent submitting: each is shown at its place, and they are counted beside the button.
import { el } from "./dom.js";

let number = 0;

export class Problems {
  constructor(summary) {
    this.summary = summary;
    this.undo = [];
  }

  /** [{ path, message, element }]; with `focus`, the first element gets the focus. */
  show(found, { focus = true } = {}) {
    this.clear();
    for (const { message, element } of found) if (element) this.at(element, message);
    const [first] = found;
    this.summary.textContent = found.length === 1 ? first.message : `${found.length} things to look at: ${first.message}`;
    const target = found.find((problem) => problem.element)?.element;
    const control = target?.matches("input, textarea, select, button, [tabindex]") ? target : target?.querySelector("input, textarea, select, button, [tabindex]");
    if (focus) control?.focus();
    target?.scrollIntoView({ block: "nearest" });
  }

  at(element, message) {
    const note = el("p.error", { id: `problem-${++number}` }, message);
    const before = element.getAttribute("aria-describedby");
    element.after(note);
    element.setAttribute("aria-invalid", "true");
    element.setAttribute("aria-describedby", [before, note.id].filter(Boolean).join(" "));
    this.undo.push(() => {
      note.remove();
      element.removeAttribute("aria-invalid");
      if (before) element.setAttribute("aria-describedby", before);
      else element.removeAttribute("aria-describedby");
    });
  }

  clear() {
    for (const undo of this.undo.splice(0)) undo();
    this.summary.textContent = "";
  }
}
