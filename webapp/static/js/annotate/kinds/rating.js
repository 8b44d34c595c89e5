// Rating one response on named scales. Nothing is filled in beforehand. "Cannot assess" is an answer, too.
import { el } from "../dom.js";
import { keyHint } from "../keymap.js";
import { clamp, keyed, makeCurrent, RowForm, scrollKeys, soleCard } from "./parts.js";

const DIGITS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"];
const minus = (value) => (value < 0 ? `\u2212${-value}` : String(value));
const values = ({ low, high }) => Array.from({ length: high - low + 1 }, (_, index) => low + index);

/** The digit of a value: the value itself if the scale begins at 0 or above (0 means ten if it is free), otherwise its position. */
function digitOf({ low }, value) {
  if (low < 0 || low > 9) return DIGITS[value - low] ?? "";
  return value <= 9 ? String(value) : value === 10 && low > 0 ? "0" : "";
}

const used = (digit) => (settings) => (settings.scales ?? []).some((scale) => values(scale).some((value) => digitOf(scale, value) === digit));

function told(scale, value) {
  if (value === null) return "cannot assess";
  const label = scale.labels?.[value];
  return label ? `${minus(value)}, ${label}` : `${minus(value)} of ${minus(scale.low)} to ${minus(scale.high)}`;
}

export default function mount(root, given) {
  return new Rating(root, given);
}

class Rating extends RowForm {
  constructor(root, { view, settings, draft, onChange, say }) {
    super();
    Object.assign(this, { scales: settings.scales ?? [], onChange, say });
    this.note = draft?.note ?? "";
    const known = new Set(this.scales.map(({ name }) => name));
    this.ratings = new Map(Object.entries(draft?.ratings ?? {}).filter(([name]) => known.has(name)));
    this.at = Math.max(0, this.scales.findIndex(({ name }) => !this.ratings.has(name)));
    this.build(root, view.responses[0]);
    this.draw();
  }

  build(root, response) {
    this.card = soleCard(response);
    this.rows = this.scales.map((scale, index) => this.row(scale, index));
    const list = this.rows.length
      ? el("ol.scales", {}, ...this.rows.map(({ element }) => element))
      : el("p.callout", { data: { tone: "warn" } }, "This project has no scales yet; its manager can add them in the settings.");
    this.form = el("section.work-form.kind-form", { ariaLabel: "Scales" }, list);
    root.append(el("div.work-beside", {}, this.card.element, this.form));
  }

  row(scale, index) {
    const rate = (value) => () => this.on(index, () => this.rate(value));
    const labels = scale.labels ?? {};
    const shape = Object.keys(labels).length > 2 ? "list" : scale.high - scale.low >= 7 ? "dense" : "row";
    const steps = values(scale).map((value) => {
      const digit = digitOf(scale, value);
      const label = labels[value] ? el("span.step-label", {}, labels[value]) : null;
      return el("button.step", { type: "button", onclick: rate(value), data: { value: String(value) } }, el("span.step-value.num", {}, minus(value)), label, digit && (shape !== "dense" || digit !== String(value)) ? keyHint(`rate_${digit}`) : null);
    });
    const none = keyed(".choice", "cannot_assess", { onclick: rate(null), data: { tone: "warn" } }, "Cannot assess");
    const chosen = el("span.scale-chosen.small.soft");
    const group = el("div.steps", { role: "group", ariaLabel: scale.name, data: { shape } }, ...steps);
    const body = el(
      "div.scale-body", {},
      el("div.row", {}, el("h3", { dir: "auto" }, scale.name), chosen, none),
      scale.help ? el("p.small.soft", { dir: "auto" }, scale.help) : null,
      group,
    );
    const element = el("li.scale", {}, body);
    element.addEventListener("focusin", () => this.look(index));
    element.addEventListener("click", () => this.look(index));
    return { element, body, steps, none, chosen };
  }

  // ---- the actions of keys ----

  rate(value) {
    const { at } = this;
    const scale = this.scales[at];
    if (!scale) return;
    this.ratings.set(scale.name, value);
    const next = this.scales.findIndex(({ name }, index) => index > at && !this.ratings.has(name));
    if (next !== -1) this.at = next;
    this.changed();
    this.say(`${scale.name}: ${told(scale, value)}.${next === -1 ? "" : ` Next: ${this.scales[next].name}`}`);
  }

  digit(digit) {
    const scale = this.scales[this.at];
    const value = scale && values(scale).find((each) => digitOf(scale, each) === digit);
    if (value !== undefined) this.rate(value);
    else if (scale) this.say(`${scale.name} goes from ${minus(scale.low)} to ${minus(scale.high)}.`);
  }

  /** Without a value, up begins at the low end and down at the high end. The scale stays the current one, for further steps. */
  step(by) {
    const scale = this.scales[this.at];
    if (!scale) return;
    const now = this.ratings.get(scale.name) ?? (by > 0 ? scale.low - 1 : scale.high + 1);
    this.ratings.set(scale.name, clamp(now + by, scale.low, scale.high));
    this.changed();
    this.say(`${scale.name}: ${told(scale, this.ratings.get(scale.name))}`);
  }

  goTo(index) {
    this.at = index;
    this.draw();
    const scale = this.scales[this.at];
    if (scale) this.say(`${scale.name}: ${this.ratings.has(scale.name) ? told(scale, this.ratings.get(scale.name)) : "not rated"}`);
  }

  // ---- the page ----

  draw({ reveal = true } = {}) {
    this.scales.forEach((scale, index) => {
      const { element, steps, none, chosen } = this.rows[index];
      const known = this.ratings.has(scale.name);
      const value = this.ratings.get(scale.name);
      element.toggleAttribute("data-done", known);
      for (const step of steps) step.ariaPressed = String(known && step.dataset.value === String(value));
      none.ariaPressed = String(known && value === null);
      chosen.textContent = known && value !== null ? (scale.labels?.[value] ?? "") : "";
    });
    makeCurrent(this.rows.map(({ element }) => element), this.at, { reveal });
  }

  // ---- for the frame ----

  value() {
    return { note: this.note, ratings: Object.fromEntries(this.ratings) };
  }

  problems() {
    const open = this.scales.map(({ name }, index) => ({ path: `ratings.${name}`, message: `${name} is not rated yet.`, element: this.rows[index].body, name }));
    return open.filter(({ name }) => !this.ratings.has(name)).map(({ path, message, element }) => ({ path, message, element }));
  }

  locate(path) {
    return this.rows[this.scales.findIndex(({ name }) => path === `ratings.${name}`)]?.body ?? this.form;
  }

  focus() {
    this.rows[this.at]?.steps[0].focus();
  }

  scrollers() {
    return [this.card.scroller];
  }

  destroy() {
    this.card.panel.destroy();
  }
}

/** The first thing to do in a task in which nothing was entered. */
export const begin = () => "Give each scale a number, or say that you cannot assess it.";

export const keys = [
  ...DIGITS.map((digit) => ({ action: `rate_${digit}`, key: digit, label: `Value or step ${digit}`, when: used(digit), run: (widget) => widget.digit(digit) })),
  { action: "cannot_assess", key: "u", label: "Cannot assess", run: (widget) => widget.rate(null) },
  { action: "row_down", key: "ArrowDown", label: "Next scale", run: (widget) => widget.move(1) },
  { action: "row_up", key: "ArrowUp", label: "Previous scale", run: (widget) => widget.move(-1) },
  { action: "higher", key: "+", label: "One step higher", run: (widget) => widget.step(1), repeats: true },
  { action: "lower", key: "-", label: "One step lower", run: (widget) => widget.step(-1), repeats: true },
  ...scrollKeys,
];

export function describe({ ratings = {} }, settings = {}) {
  const scaleOf = (name) => settings.scales?.find((scale) => scale.name === name) ?? { low: "?", high: "?" };
  return Object.entries(ratings).map(([name, value]) => `${name}: ${told(scaleOf(name), value)}`).join(" · ") || "nothing rated yet";
}
