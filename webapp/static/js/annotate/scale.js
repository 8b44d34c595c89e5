// One row of seven steps between A and B. They are radio buttons, so arrows and screen readers work; digits press them.
import { el } from "./dom.js";
import { keyHint } from "./keymap.js";

export const STEPS = [
  [-3, "A much better"], [-2, "A better"], [-1, "A slightly better"], [0, "About the same"],
  [1, "B slightly better"], [2, "B better"], [3, "B much better"],
];
export const wordsOf = (strength) => STEPS.find(([value]) => value === strength)?.[1] ?? "not answered";
const SHORT = ["A much", "A better", "A slightly", "Same", "B slightly", "B better", "B much"];
let group = 0;

/** { element, value, set(strength|null), focus() }; `changed(value)` is called when the person chooses; `hints`: show the digits.
 * `optional`: the name says that the row may stay empty. */
export function scale({ name, value = null, changed, hints = true, legend = true, optional = false }) {
  const id = `scale-${++group}`;
  const inputs = STEPS.map(([strength, words], index) => {
    const input = el("input", { type: "radio", name: id, value: String(strength), checked: strength === value });
    input.setAttribute("aria-label", words);
    input.addEventListener("change", () => {
      made.value = strength;
      changed(strength);
    });
    return el("label.work-step", { data: { side: strength < 0 ? "A" : strength > 0 ? "B" : "" }, title: words },
      input, el("span", {}, SHORT[index]), hints ? keyHint(`strength_${index + 1}`) : null);
  });
  const named = el(legend ? "legend.work-scale-name" : "legend.visually-hidden", {}, name, optional ? el("span.optional", {}, " optional") : null);
  const element = el("fieldset.work-scale", {}, named, el("div.work-steps", {}, ...inputs));
  const made = {
    element, value,
    set(strength) {
      made.value = strength;
      for (const label of inputs) label.control.checked = Number(label.control.value) === strength && strength !== null;
    },
    disable(off) {
      element.toggleAttribute("data-off", off);
    },
  };
  return made;
}
