// The better of two responses, by how much, and why. The server has already blinded and shuffled the sides.
import { icon } from "../../icons.js";
import { pair, passageButton } from "../cards.js";
import { el, recall, remember } from "../dom.js";
import { keyHint } from "../keymap.js";
import { passageOf } from "../picker.js";
import { ReasonList } from "../reasons.js";
import { scale, STEPS, wordsOf } from "../scale.js";
import { splitter } from "../split.js";
import { cut } from "../text.js";

const SIDES = ["A", "B"];

export default function mount(root, { view, settings, draft, onChange, say }) {
  return new Pairwise(root, { view, settings, draft: draft ?? {}, onChange, say });
}

class Pairwise {
  constructor(root, { view, settings, draft, onChange, say }) {
    Object.assign(this, { view, settings, onChange, say });
    this.verdict = draft.verdict ?? "compared";
    this.note = draft.note ?? "";
    const extra = (letter) => passageButton(`attach_${letter.toLowerCase()}`, "Add to reason", (byKey) => this.attach(letter, !byKey));
    this.pair = pair(view.responses, { toggleKey: "link", extra: settings.reasons === "none" ? undefined : extra });
    this.drawAnswer(draft);
    this.reasons = settings.reasons === "none" ? null : this.drawReasons(draft.reasons ?? []);
    root.classList.add("work-pairwise");
    this.root = root;
    const parts = [this.answer, ...(this.reasons ? [this.reasons.element] : [])];
    root.append(this.pair.element, ...this.bars(), el("div.work-answer", {}, ...parts));
    this.dock(recall("dock", "below"));
    this.paint();
    this.mark();
  }

  drawAnswer(draft) {
    const dimensions = this.settings.dimensions;
    const row = (name, value, index) =>
      scale({ name, value, hints: index === 0, legend: index > 0 || dimensions.length > 0, optional: index > 0, changed: () => this.chose(index) });
    this.overall = row(dimensions.length ? "Overall" : "Which response is better?", draft.strength ?? null, 0);
    this.dimensions = dimensions.map((name, index) => [name, row(name, draft.dimensions?.[name] ?? null, index + 1)]);
    this.rows = [this.overall, ...this.dimensions.map(([, each]) => each)];
    this.at = 0;
    this.bad = this.toggleFor("both_bad", "Both bad");
    this.unable = this.toggleFor("cannot_assess", "Cannot assess");
    this.docking = el("button.btn.ghost.small.work-arrange", { type: "button", onclick: () => this.turn() }, icon("panel-right"), el("span", {}, "Answer beside"), keyHint("dock"));
    const others = el("div.work-others", {}, this.bad, this.unable, this.pair.link, this.docking);
    this.answer = el("div.work-choice", { data: { rows: this.rows.length } }, el("div.work-scales", {}, ...this.rows.map((each) => each.element)), others);
    this.rows.forEach((each, index) => each.element.addEventListener("focusin", () => this.goTo(index, false)));
  }

  /** Shows only that one of the two lines which fits the place of the answer. */
  bars() {
    return [
      splitter(this.root, { name: "below", label: "Height of the responses", axis: "y", least: 20, most: 80 }),
      splitter(this.root, { name: "beside", label: "Width of the responses", start: 66, least: 40, most: 75 }),
    ];
  }

  dock(place) {
    this.root.dataset.dock = place;
    this.docking.title = "Answer beside the responses, or below them";
    this.docking.ariaPressed = String(place === "beside");
    remember("dock", place);
  }

  turn() {
    this.dock(this.root.dataset.dock === "below" ? "beside" : "below");
  }

  toggleFor(verdict, words) {
    return el("button.btn.small", { type: "button", onclick: () => this.judge(verdict) }, words, keyHint(verdict));
  }

  drawReasons(reasons) {
    const needed = this.settings.reasons === "required";
    return new ReasonList({
      reasons, say: this.say,
      title: needed ? "Reasons" : "Reasons (optional)",
      hint: "Say why, one judgement per line.",
      changed: () => this.changed(),
      quote: (reason) => cut(this.textOf(reason.response), reason.start, reason.end),
      chosen: (reason) => { this.mark(); if (reason?.response) this.pair.card(reason.response).panel.reveal(reason); },
    });
  }

  textOf(letter) {
    return this.view.responses.find((response) => response.letter === letter)?.text ?? "";
  }

  // ---- the actions of keys ----

  press(strength) {
    const row = this.rows[this.at];
    row.set(strength);
    this.chose(this.at);
    this.say(`${this.at ? `${this.dimensions[this.at - 1][0]}: ` : ""}${wordsOf(strength)}`);
  }

  chose(index) {
    if (index === 0 && this.verdict === "cannot_assess") this.verdict = "compared";
    this.changed();
  }

  judge(verdict) {
    this.verdict = this.verdict === verdict ? "compared" : verdict;
    if (this.verdict === "cannot_assess") this.rows.forEach((row) => row.set(null));
    this.say(this.verdict === "compared" ? "Undone." : verdict === "both_bad" ? "Both bad." : "Cannot assess.");
    this.changed();
  }

  goTo(index, speak = true) {
    this.at = (index + this.rows.length) % this.rows.length;
    this.rows.forEach((row, place) => row.element.toggleAttribute("data-current", place === this.at && this.rows.length > 1));
    if (speak) this.say(this.at ? this.dimensions[this.at - 1][0] : "Overall");
    if (speak) this.rows[this.at].element.scrollIntoView({ block: "nearest" });
  }

  /** The selection in that side becomes the passage of a reason. Without a selection, the person chooses it by keys. */
  attach(letter, pointer = false) {
    passageOf(this.pair.card(letter), { key: letter.toLowerCase(), say: this.say, pointer, take: (span) => this.tie(letter, span) });
  }

  tie(letter, { start, end, quote }) {
    this.reasons.attach({ response: letter, start, end });
    this.say(`Passage of ${letter}: ${quote}`);
  }

  // ---- state ----

  changed() {
    this.paint();
    this.mark();
    this.onChange();
  }

  paint() {
    this.bad.ariaPressed = String(this.verdict === "both_bad");
    this.unable.ariaPressed = String(this.verdict === "cannot_assess");
    for (const row of this.rows) row.disable(this.verdict === "cannot_assess");
  }

  mark() {
    for (const letter of SIDES) this.pair.card(letter)?.panel.mark(...(this.reasons?.marks(letter) ?? [[], -1]));
  }

  value() {
    return {
      verdict: this.verdict,
      strength: this.overall.value,
      dimensions: Object.fromEntries(this.dimensions.map(([name, row]) => [name, row.value])),
      reasons: this.reasons?.value() ?? [],
      note: this.note,
    };
  }

  problems() {
    const found = [];
    if (this.verdict === "compared" && this.overall.value === null)
      found.push({ path: "strength", message: "Choose one of the seven steps, or both bad, or cannot assess.", element: this.overall.element });
    const needed = this.settings.reasons === "required" && this.verdict === "compared";
    if (needed && !this.reasons.value().length)
      found.push({ path: "reasons", message: "This project asks for at least one reason.", element: this.reasons.add });
    return [...found, ...(this.reasons?.problems() ?? [])];
  }

  locate(path) {
    return path.startsWith("reasons") ? this.reasons?.add : path.startsWith("dimensions") ? this.dimensions[0]?.[1].element : this.overall.element;
  }

  focus() {
    this.rows[0].element.querySelector("input").focus();
  }

  destroy() {
    this.pair.destroy();
  }
}

const hasDimensions = (settings) => settings.dimensions.length > 0;
const takesReasons = (settings) => settings.reasons !== "none";

/** The first thing to do in a task in which nothing was entered. */
export const begin = () => "Choose one of the seven steps, or both bad, or cannot assess.";

export const keys = [
  ...STEPS.map(([strength, words], index) => ({
    action: `strength_${index + 1}`, key: String(index + 1), label: words, run: (widget) => widget.press(strength),
  })),
  { action: "both_bad", key: "0", label: "Both bad", run: (widget) => widget.judge("both_bad") },
  { action: "cannot_assess", key: "u", label: "Cannot assess", run: (widget) => widget.judge("cannot_assess") },
  { action: "row_down", key: "ArrowDown", label: "Next dimension", when: hasDimensions, run: (widget) => widget.goTo(widget.at + 1) },
  { action: "row_up", key: "ArrowUp", label: "Previous dimension", when: hasDimensions, run: (widget) => widget.goTo(widget.at - 1) },
  { action: "reason", key: "r", label: "New reason", when: takesReasons, run: (widget) => widget.reasons.insert() },
  { action: "edit", key: "e", label: "Edit the current reason", when: takesReasons, run: (widget) => widget.reasons.edit() },
  { action: "attach_a", key: "a", label: "Add a passage of A to the reason", when: takesReasons, run: (widget) => widget.attach("A") },
  { action: "attach_b", key: "b", label: "Add a passage of B to the reason", when: takesReasons, run: (widget) => widget.attach("B") },
  { action: "link", key: "s", label: "Scroll the responses together or separately", run: (widget) => widget.pair.toggle() },
  { action: "dock", key: "d", label: "Answer below the responses or beside them", run: (widget) => widget.turn() },
  { action: "scroll_down", key: "j", label: "Scroll the responses down", run: (widget) => widget.pair.scroll(1), repeats: true },
  { action: "scroll_up", key: "k", label: "Scroll the responses up", run: (widget) => widget.pair.scroll(-1), repeats: true },
];

export function describe({ verdict, strength, reasons = [], dimensions = {} }) {
  const words = { both_bad: "Both bad", cannot_assess: "Cannot assess" }[verdict];
  const parts = [words, strength === null || strength === undefined ? (words ? null : "No step chosen") : wordsOf(strength)];
  for (const [name, value] of Object.entries(dimensions)) if (value !== null) parts.push(`${name}: ${wordsOf(value)}`);
  for (const reason of reasons) parts.push(`“${reason.text}”`);
  return parts.filter(Boolean).join(" · ");
}
