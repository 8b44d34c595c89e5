// One criterion while it is written: text, points, kind, importance, what checks it, and the hints about it.
import { icon } from "../../icons.js";
import { el } from "../dom.js";
import { clamp } from "./parts.js";
import { VerifierForm } from "./verifier-form.js";

export const KINDS = { principle: "Principle: needs judgement", hard: "Hard: decided without opinion" };
export const IMPORTANCE = ["essential", "important", "optional", "pitfall"];
const MOST_POINTS = 10; // the limit of the stepper; more can be typed
let number = 0;

/** The next whole number of points in a direction, except 0. */
export function stepped(points, by) {
  const next = clamp(Math.round(points ?? 0) + by, -MOST_POINTS, MOST_POINTS);
  return next === 0 ? by : next;
}

/** A fault costs points and every other criterion gains some, so the importance follows the sign. */
export function withPoints(criterion, points) {
  criterion.points = points;
  if (points < 0) criterion.importance = "pitfall";
  else if (points > 0 && criterion.importance === "pitfall") criterion.importance = "important";
}

/** The criterion with another importance; the sign of its points follows. */
export function withImportance(criterion, importance) {
  criterion.importance = importance;
  if (criterion.points !== null && (importance === "pitfall") !== criterion.points < 0) criterion.points = -criterion.points;
}

export class CriterionRow {
  /** `editor` is the list: its `changed(row)` and `edit(row, change)` are called, and it gets keys of the text field. */
  constructor(criterion, editor) {
    Object.assign(this, { criterion, editor });
    const id = `line-${++number}`;
    this.number = el("span.criterion-number.num", { ariaHidden: "true" });
    this.text = el("textarea.criterion-text", { rows: 1, dir: "auto", value: criterion.text, placeholder: "One check that is either met or not", "aria-describedby": `${id}-hints` });
    this.hints = el("ul.criterion-hints", { id: `${id}-hints`, role: "status" });
    this.points = el("input.input.num", { type: "number", step: 1, ariaLabel: "Points" });
    this.kinds = Object.entries(KINDS).map(([kind, title]) =>
      el("button", { type: "button", title, data: { kind }, onclick: () => this.set((each) => (each.kind = kind)) }, kind === "hard" ? "Hard" : "Principle"),
    );
    this.importance = el("select.select", { ariaLabel: "Importance", onchange: () => this.set((each) => withImportance(each, this.importance.value)) }, ...IMPORTANCE.map((each) => el("option", { value: each }, each)));
    this.tags = el("input.input.criterion-tags", { ariaLabel: "Tags, separated by commas", placeholder: "tags, separated by commas", maxLength: 400, value: criterion.tags.join(", ") });
    this.checked = el("button.btn.ghost.small.criterion-checked", { type: "button", "aria-expanded": "false", onclick: () => this.toggleVerifier() }, icon("flask-conical"), el("span.truncate"));
    this.panel = el("div.criterion-panel", { hidden: true });
    this.element = this.arrange();
    this.listen();
    this.draw();
  }

  arrange() {
    const step = (by, words, shape) => el("button.btn.ghost.icon-only", { type: "button", tabIndex: -1, ariaLabel: words, onclick: () => this.set((each) => withPoints(each, stepped(each.points, by))) }, shape);
    const tool = (words, shape, act) => el("button.btn.ghost.small.icon-only", { type: "button", ariaLabel: words, title: words, onclick: act }, shape);
    const { editor } = this;
    return el(
      "li.criterion", {},
      this.number,
      this.text,
      el("div.points", {}, step(-1, "One point less", icon("minus")), this.points, step(1, "One point more", icon("plus"))),
      this.hints,
      el(
        "div.criterion-more", {},
        el("div.segments", { role: "group", ariaLabel: "Kind" }, ...this.kinds),
        this.importance,
        this.checked,
        el(
          "span.criterion-tools", {},
          tool("Move up", icon("arrow-up"), () => editor.shift(-1, this)),
          tool("Move down", icon("arrow-down"), () => editor.shift(1, this)),
          tool("Duplicate", icon("copy"), () => editor.duplicate(this)),
          tool("Delete", icon("trash-2"), () => editor.remove(this)),
        ),
      ),
      this.tags,
      this.panel,
    );
  }

  listen() {
    this.text.addEventListener("input", () => this.editor.typed(this, (each) => (each.text = this.text.value.replace(/\n/g, " "))));
    this.text.addEventListener("keydown", (event) => this.press(event));
    this.points.addEventListener("input", () => {
      const points = this.points.value === "" ? null : Number(this.points.value);
      this.editor.typed(this, (each) => withPoints(each, points));
    });
    this.tags.addEventListener("input", () => this.editor.typed(this, (each) => (each.tags = named(this.tags.value))));
    this.element.addEventListener("focusin", () => this.editor.look(this));
    this.element.addEventListener("click", () => this.editor.look(this));
  }

  /** Keys in the text field, as in a list editor. */
  press(event) {
    if (event.altKey || event.isComposing) return;
    const mod = event.ctrlKey || event.metaKey;
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === "Enter" && !mod) this.editor.insert(this);
    else if (step && mod && event.shiftKey) this.editor.shift(step, this);
    else if (step && !mod && !event.shiftKey && this.atEdge(step)) this.editor.beside(this, step)?.text.focus();
    else if (event.key === "Backspace" && !mod && !this.text.value && !event.repeat) this.editor.remove(this, { edit: true });
    else if (event.key === "Backspace" && mod && event.shiftKey) this.editor.remove(this, { edit: true });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  atEdge(step) {
    const { selectionStart, selectionEnd, value } = this.text;
    return step < 0 ? selectionStart === 0 && selectionEnd === 0 : selectionEnd === value.length;
  }

  set(change) {
    this.editor.edit(this, change);
  }

  toggleVerifier(open = this.panel.hidden) {
    if (open && !this.form) {
      this.form = new VerifierForm({
        spec: this.criterion.verifier && structuredClone(this.criterion.verifier),
        changed: (spec) => this.editor.typed(this, (each) => {
          if (spec && !each.verifier) each.kind = "hard"; // a criterion that a program decides needs no opinion
          each.verifier = spec;
        }),
      });
      this.panel.append(this.form.element);
    }
    this.panel.hidden = !open;
    this.checked.setAttribute("aria-expanded", String(open));
    if (open) this.form.focus();
  }

  draw() {
    const { criterion } = this;
    const { text, points, kind, importance, tags, verifier } = criterion;
    if (this.text.value !== text && document.activeElement !== this.text) this.text.value = text;
    if (document.activeElement !== this.points || Number(this.points.value) !== points) this.points.value = points ?? "";
    this.element.dataset.sign = points < 0 ? "minus" : "plus";
    for (const button of this.kinds) button.ariaPressed = String(button.dataset.kind === kind);
    this.importance.value = importance;
    if (document.activeElement !== this.tags) this.tags.value = tags.join(", ");
    this.checked.lastChild.textContent = verifier ? told(verifier) : "Judge or person";
    this.checked.toggleAttribute("data-chosen", Boolean(verifier));
  }

  showHints(hints) {
    const told = JSON.stringify(hints.map(({ message }) => message));
    if (told === this.hinted) return; // screen readers read it only once
    this.hinted = told;
    this.hints.replaceChildren(...hints.map(({ code, message }) => el("li.hint", { data: { code } }, icon(code === "verifier" ? "triangle-alert" : "lightbulb"), message)));
  }
}

/** Each tag once, in the order they were typed. */
function named(text) {
  return [...new Set(text.split(",").map((tag) => tag.trim().replace(/\s+/g, " ")).filter(Boolean))];
}

/** "word_count: max 20" */
function told({ name, args }) {
  const shown = Object.entries(args).map(([key, value]) => `${key} ${Array.isArray(value) ? value.join(", ") : value}`);
  return [name.replaceAll("_", " "), shown.join(", ")].filter(Boolean).join(": ");
}
