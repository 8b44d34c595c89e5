// Criterion grading: for one response, every criterion is met, not met or cannot be assessed. Nothing is filled in beforehand.
import { icon } from "../../icons.js";
import { el } from "../dom.js";
import { pick } from "../picker.js";
import { cut, line, tooLong } from "../text.js";
import { excerpt, keyed, makeCurrent, pointsChip, RowForm, scrollKeys, soleCard, VERDICTS } from "./parts.js";

export default function mount(root, given) {
  return new Grading(root, given);
}

class Grading extends RowForm {
  constructor(root, { view, draft, onChange, say }) {
    super();
    Object.assign(this, { criteria: view.criteria, text: view.responses[0]?.text ?? "", onChange, say });
    this.note = draft?.note ?? "";
    const before = new Map((draft?.grades ?? []).map((grade) => [grade.criterion, grade]));
    const blank = { verdict: null, start: null, end: null, note: "" };
    this.grades = this.criteria.map(({ id }) => ({ ...blank, ...before.get(id), criterion: id }));
    this.suggested = new Map((view.suggestion?.grades ?? []).map((grade) => [grade.criterion, grade.verdict]));
    this.at = Math.max(0, this.grades.findIndex((grade) => !grade.verdict));
    this.build(root, view.responses[0]);
    this.draw();
  }

  build(root, response) {
    this.card = soleCard(response);
    this.progress = el("progress.progress", { max: this.criteria.length, ariaLabel: "Criteria graded" });
    this.count = el("span.num");
    this.rows = this.criteria.map((criterion, index) => this.row(criterion, index));
    const jump = keyed(".btn.ghost.small", "ungraded", { onclick: () => this.jump() }, "Next ungraded");
    const head = el("header.kind-head", {}, el("h2.label", {}, "Criteria"), el("div.progress-line", {}, this.count, this.progress), jump);
    this.form = el("section.work-form.kind-form", { ariaLabel: "Criteria" }, head, el("ol.grades", {}, ...this.rows.map(({ element }) => element)));
    root.append(el("div.work-beside", {}, this.card.element, this.form));
  }

  row(criterion, index) {
    const choices = Object.entries(VERDICTS).map(([verdict, { words, shape, tone }]) =>
      keyed(".choice", verdict, { onclick: () => this.on(index, () => this.grade(verdict)), data: { verdict, tone } }, shape(), words),
    );
    const note = el("textarea.textarea", { rows: 1, dir: "auto", ariaLabel: `Note on criterion ${index + 1}`, value: this.grades[index].note, placeholder: "A note on this criterion" });
    note.addEventListener("input", () => {
      this.grades[index].note = note.value;
      this.onChange();
    });
    const quote = el("q.truncate", { dir: "auto" });
    const drop = el("button.btn.ghost.small.icon-only", { type: "button", ariaLabel: `Remove the evidence for criterion ${index + 1}`, onclick: () => this.on(index, () => this.clearEvidence()) }, icon("x"));
    const evidence = el("p.grade-evidence", {}, icon("quote"), quote, drop);
    const hold = (event) => event.preventDefault(); // the pointer must not clear the selection before it is read
    const tools = el(
      "span.grade-tools", {},
      keyed(".btn.ghost.small", "evidence", { onpointerdown: hold, onmousedown: hold, onclick: () => this.on(index, () => this.evidence()) }, icon("quote"), "Evidence"),
      keyed(".btn.ghost.small", "criterion_note", { onclick: () => this.on(index, () => this.writeNote()) }, icon("message-square"), "Note"),
    );
    const hint = VERDICTS[this.suggested.get(criterion.id)];
    const body = el(
      "div.grade-main", {},
      el("div.grade-line", {}, line(el("p.grade-text", { id: `criterion-${index}` }), criterion.text), pointsChip(criterion.points)),
      criterion.points < 0 ? el("p.tiny.muted", {}, "A fault: “met” means that the response has it.") : null,
      hint ? el("p.tiny.muted", {}, `The model says: ${hint.words.toLowerCase()}`) : null,
      el("div.grade-actions", {}, el("div.choices", { role: "group", "aria-labelledby": `criterion-${index}` }, ...choices), tools),
      evidence,
      note,
    );
    const element = el("li.grade", {}, el("span.grade-number.num", { ariaHidden: "true" }, String(index + 1)), body);
    element.addEventListener("focusin", () => this.look(index));
    element.addEventListener("click", () => this.look(index));
    return { element, body, choices, note, quote, evidence };
  }

  // ---- the actions of keys ----

  grade(verdict) {
    const { at } = this;
    this.grades[at].verdict = verdict;
    const next = this.grades.findIndex((grade, index) => index > at && !grade.verdict);
    if (next !== -1) this.at = next;
    this.changed();
    this.say(`Criterion ${at + 1}: ${VERDICTS[verdict].words}. ${this.done()} of ${this.grades.length}.${next === -1 ? "" : ` Next: ${this.criteria[next].text}`}`);
  }

  jump() {
    this.jumpTo((index) => !this.grades[index].verdict, "Every criterion is graded.");
  }

  goTo(index) {
    this.at = index;
    this.draw();
    const { verdict } = this.grades[index];
    this.say(`Criterion ${index + 1}: ${this.criteria[index].text} ${verdict ? VERDICTS[verdict].words : "Not graded"}.`);
  }

  /** The selected words are the evidence. Without a selection, the person chooses words by keys. */
  evidence() {
    const { at } = this;
    const { panel, scroller } = this.card;
    const span = panel.selection();
    if (span) return this.attach(at, span);
    pick(panel, {
      key: "e", say: this.say,
      done: (chosen) => {
        if (document.activeElement === scroller) document.getElementById("work-main").focus({ preventScroll: true });
        if (chosen) this.attach(at, chosen);
      },
    });
  }

  attach(index, { start, end, quote }) {
    getSelection().removeAllRanges();
    Object.assign(this.grades[index], { start, end });
    this.changed();
    this.say(`Evidence for criterion ${index + 1}: ${quote}`);
  }

  clearEvidence() {
    Object.assign(this.grades[this.at], { start: null, end: null });
    this.changed();
  }

  writeNote() {
    const { note } = this.rows[this.at];
    note.hidden = false;
    note.focus();
  }

  // ---- the page ----

  done() {
    return this.grades.filter((grade) => grade.verdict).length;
  }

  draw({ reveal = true } = {}) {
    const done = this.done();
    this.count.textContent = `${done} of ${this.grades.length}`;
    this.progress.value = done;
    this.progress.dataset.state = done === this.grades.length ? "finished" : "running";
    this.grades.forEach((grade, index) => {
      const { element, choices, evidence, quote, note } = this.rows[index];
      element.dataset.verdict = grade.verdict ?? "";
      for (const choice of choices) choice.ariaPressed = String(choice.dataset.verdict === grade.verdict);
      evidence.hidden = grade.start === null;
      if (grade.start !== null) quote.textContent = excerpt(cut(this.text, grade.start, grade.end), 200);
      note.hidden = !grade.note && document.activeElement !== note;
    });
    makeCurrent(this.rows.map(({ element }) => element), this.at, { reveal });
    const marked = this.grades.map((grade, index) => ({ ...grade, index })).filter(({ start }) => start !== null);
    this.card.panel.mark(marked, marked.findIndex(({ index }) => index === this.at));
  }

  // ---- for the frame ----

  value() {
    const told = this.grades.filter((grade) => grade.verdict || grade.note || grade.start !== null);
    return { note: this.note, grades: told.map((grade) => ({ ...grade })) };
  }

  problems() {
    const found = this.grades.map((grade, index) => ({ grade, path: `grades.${index}`, message: `Criterion ${index + 1} is not graded yet.`, element: this.rows[index].body }));
    const open = found.filter(({ grade }) => !grade.verdict).map(({ path, message, element }) => ({ path, message, element }));
    return [...open, ...this.longNotes()];
  }

  longNotes() {
    const told = this.grades.map(({ note }, index) => ({ path: `grades.${index}.note`, message: tooLong(note), element: this.rows[index].note }));
    return told.filter(({ message }) => message);
  }

  locate(path) {
    return this.rows[Number(path.match(/^grades\.(\d+)/)?.[1])]?.body ?? this.form;
  }

  focus() {
    this.rows[this.at]?.choices[0].focus();
  }

  scrollers() {
    return [this.card.scroller];
  }

  destroy() {
    this.card.panel.destroy();
  }
}

/** The first thing to do in a task in which nothing was entered. */
export const begin = () => "Say of each criterion whether it is met, not met, or cannot be assessed.";

export const keys = [
  { action: "met", key: "y", label: "Met", run: (widget) => widget.grade("met") },
  { action: "not_met", key: "n", label: "Not met", run: (widget) => widget.grade("not_met") },
  { action: "cannot_assess", key: "u", label: "Cannot assess", run: (widget) => widget.grade("cannot_assess") },
  { action: "row_down", key: "ArrowDown", label: "Next criterion", run: (widget) => widget.move(1), repeats: true },
  { action: "row_up", key: "ArrowUp", label: "Previous criterion", run: (widget) => widget.move(-1), repeats: true },
  { action: "ungraded", key: "o", label: "Next ungraded criterion", run: (widget) => widget.jump() },
  { action: "evidence", key: "e", label: "Evidence: the selected words, or words chosen by keys", run: (widget) => widget.evidence() },
  { action: "no_evidence", key: "x", label: "Remove the evidence", run: (widget) => widget.clearEvidence() },
  { action: "criterion_note", key: "c", label: "Note on this criterion", run: (widget) => widget.writeNote() },
  ...scrollKeys,
];

export function describe({ grades = [] }) {
  const counts = Object.entries(VERDICTS).map(([verdict, { words }]) => [grades.filter((grade) => grade.verdict === verdict).length, words.toLowerCase()]);
  return counts.filter(([count]) => count).map(([count, words]) => `${count} ${words}`).join(", ") || "nothing graded yet";
}

/** The differences by criterion, so that the person knows where to look again. */
export function compare({ grades: mine = [] }, { grades: theirs = [] }) {
  const said = new Map(theirs.map(({ criterion, verdict }) => [criterion, verdict]));
  const both = mine.map((grade, index) => ({ ...grade, number: index + 1 })).filter(({ criterion }) => said.has(criterion));
  const others = both.filter(({ criterion, verdict }) => said.get(criterion) !== verdict);
  const words = others.map(({ criterion, number }) => `${number}: ${VERDICTS[said.get(criterion)].words.toLowerCase()}`);
  if (words.length) return `A model disagrees on criterion ${words.join(", ")}`;
  return `A model agrees on ${both.length === mine.length ? "all" : "the"} ${both.length}`;
}
