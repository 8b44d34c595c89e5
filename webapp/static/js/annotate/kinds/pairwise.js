// Which of two responses is better, how much, and why. The sides are already blinded and shuffled when they come here.
import { pair } from "../cards.js";
import { el } from "../dom.js";
import { keyHint } from "../keymap.js";
import { pick } from "../picker.js";
import { ReasonList } from "../reasons.js";
import { scale, STEPS, wordsOf } from "../scale.js";
import { cut, isFormatted, setFormatted } from "../text.js";

const SIDES = ["A", "B"];

export default function mount(root, { view, settings, draft, onChange, say }) {
  return new Pairwise(root, { view, settings, draft: draft ?? {}, onChange, say });
}

class Pairwise {
  constructor(root, { view, settings, draft, onChange, say }) {
    Object.assign(this, { view, settings, onChange, say });
    this.verdict = draft.verdict ?? "compared";
    this.note = draft.note ?? "";
    this.pair = pair(view.responses, { toggleKey: "link" });
    this.drawAnswer(draft);
    this.reasons = settings.reasons === "none" ? null : this.drawReasons(draft.reasons ?? []);
    root.classList.add("work-pairwise");
    root.append(this.pair.element, el("div.work-answer", {}, this.answer, ...(this.reasons ? [this.reasons.element] : [])));
    this.paint();
    this.mark();
  }

  drawAnswer(draft) {
    const dimensions = this.settings.dimensions;
    const row = (name, value, index) =>
      scale({ name, value, hints: index === 0, legend: index > 0 || dimensions.length > 0, changed: () => this.chose(index) });
    this.overall = row(dimensions.length ? "Overall" : "Which response is better?", draft.strength ?? null, 0);
    this.dimensions = dimensions.map((name, index) => [name, row(name, draft.dimensions?.[name] ?? null, index + 1)]);
    this.rows = [this.overall, ...this.dimensions.map(([, each]) => each)];
    this.at = 0;
    this.bad = this.toggleFor("both_bad", "Both bad");
    this.unable = this.toggleFor("cannot_assess", "Cannot assess");
    const others = el("div.work-others", {}, this.bad, this.unable, this.pair.link);
    this.answer = el("div.work-choice", { data: { rows: this.rows.length } }, el("div.work-scales", {}, ...this.rows.map((each) => each.element)), others);
    this.rows.forEach((each, index) => each.element.addEventListener("focusin", () => this.goTo(index, false)));
  }

  toggleFor(verdict, words) {
    return el("button.btn.small", { type: "button", onclick: () => this.judge(verdict) }, words, keyHint(verdict));
  }

  drawReasons(reasons) {
    const needed = this.settings.reasons === "required";
    return new ReasonList({
      reasons, say: this.say,
      title: needed ? "Reasons" : "Reasons (optional)",
      hint: "Select a passage and press A or B to tie it to a reason.",
      changed: () => this.changed(),
      quote: (reason) => cut(this.textOf(reason.response), reason.start, reason.end),
      chosen: (reason) => { this.mark(); if (reason?.response) this.pair.card(reason.response).panel.reveal(reason); },
    });
  }

  textOf(letter) {
    return this.view.responses.find((response) => response.letter === letter)?.text ?? "";
  }

  // ---- what the keys do ----

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
    this.say(this.verdict === "compared" ? "Taken back." : verdict === "both_bad" ? "Both bad." : "Cannot assess.");
    this.changed();
  }

  goTo(index, speak = true) {
    this.at = (index + this.rows.length) % this.rows.length;
    this.rows.forEach((row, place) => row.element.toggleAttribute("data-current", place === this.at && this.rows.length > 1));
    if (speak) this.say(this.at ? this.dimensions[this.at - 1][0] : "Overall");
    if (speak) this.rows[this.at].element.scrollIntoView({ block: "nearest" });
  }

  /** The selection in that side becomes the passage of a reason; without one, the keyboard chooses it. */
  attach(letter) {
    const { panel, scroller } = this.pair.card(letter);
    const span = panel.selection();
    if (span?.ambiguous) this.say("That passage is there more than once; choose it as it is written.");
    if (span && !span.ambiguous) {
      getSelection().removeAllRanges();
      return this.tie(letter, span);
    }
    if (isFormatted()) setFormatted(false); // places are certain in the text as it was written
    pick(panel, {
      key: letter.toLowerCase(), say: this.say,
      done: (chosen) => {
        if (document.activeElement === scroller) document.getElementById("work-main").focus({ preventScroll: true });
        if (chosen) this.tie(letter, chosen);
      },
    });
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
    if (this.reasons && this.settings.reasons === "required" && this.verdict === "compared" && !this.reasons.value().length)
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

export const keys = [
  ...STEPS.map(([strength, words], index) => ({
    action: `strength_${index + 1}`, key: String(index + 1), label: words, run: (widget) => widget.press(strength),
  })),
  { action: "both_bad", key: "0", label: "Both bad", run: (widget) => widget.judge("both_bad") },
  { action: "cannot_assess", key: "u", label: "Cannot assess", run: (widget) => widget.judge("cannot_assess") },
  { action: "row_down", key: "ArrowDown", label: "Next dimension", when: hasDimensions, run: (widget) => widget.goTo(widget.at + 1) },
  { action: "row_up", key: "ArrowUp", label: "Previous dimension", when: hasDimensions, run: (widget) => widget.goTo(widget.at - 1) },
  { action: "reason", key: "r", label: "New reason", when: takesReasons, run: (widget) => widget.reasons.insert() },
  { action: "edit", key: "e", label: "Edit the reason at hand", when: takesReasons, run: (widget) => widget.reasons.edit() },
  { action: "attach_a", key: "a", label: "Tie a passage of A to the reason", when: takesReasons, run: (widget) => widget.attach("A") },
  { action: "attach_b", key: "b", label: "Tie a passage of B to the reason", when: takesReasons, run: (widget) => widget.attach("B") },
  { action: "link", key: "s", label: "Scroll the responses together or apart", run: (widget) => widget.pair.toggle() },
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
