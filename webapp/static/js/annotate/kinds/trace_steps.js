// Steps of an agent's trace: a verdict on each step of the agent, up to the first wrong one, which is the first error.
import { icon } from "../../icons.js";
import { laid } from "../../laid.js";
import { el } from "../dom.js";
import { TextPanel, tooLong } from "../text.js";
import { excerpt, keyed, makeCurrent, RowForm, scrollKeys } from "./parts.js";

const VERDICTS = {
  correct: { words: "Correct", shape: "check", tone: "good" },
  incorrect: { words: "Wrong", shape: "x", tone: "bad" },
  cannot_assess: { words: "Cannot assess", shape: "circle-question-mark", tone: "warn" },
};
const LONG = 12; // lines of a step that are shown before the person asks for all of it
const LONG_LETTERS = 1200;

export default function mount(root, given) {
  return new TraceSteps(root, given);
}

class TraceSteps extends RowForm {
  constructor(root, { view, draft, onChange, say }) {
    super();
    Object.assign(this, { onChange, say, panels: [] });
    this.note = draft?.note ?? "";
    const before = new Map((draft?.steps ?? []).map((each) => [each.step, each]));
    this.steps = view.material.steps.filter(({ judged }) => judged).map((step) => ({ verdict: null, reason: "", ...before.get(step.number), step: step.number, about: step }));
    this.at = Math.max(0, this.steps.findIndex((each) => !each.verdict));
    this.build(root, view.material.steps);
    this.draw();
  }

  build(root, all) {
    this.progress = el("progress.progress", { max: this.steps.length, ariaLabel: "Steps judged" });
    this.count = el("span.num");
    this.told = el("span.small.soft.trace-told", { role: "status" });
    const jump = keyed(".btn.ghost.small", "unjudged", { onclick: () => this.jump() }, "Next without a verdict");
    const head = el("header.kind-head", {}, el("h2.label", {}, "Steps"), el("div.progress-line", {}, this.count, this.progress), this.told, jump);
    this.rows = [];
    const items = all.map((step) => (step.judged ? this.row(step) : this.context(step)));
    this.form = el("section.work-form.kind-form.trace-work", { ariaLabel: "Steps of the trace" }, head, el("ol.grades.trace-steps", {}, ...items));
    root.append(this.form);
  }

  /** A message of others, or the result of a tool, which is read and not judged. */
  context(step) {
    return el("li.trace-step.trace-context", { data: { kind: step.kind, ...(step.failed ? { failed: "" } : {}) } }, this.title(step), this.words(step));
  }

  title({ number, title }) {
    return el("p.trace-title", {}, el("span.num", {}, String(number)), " ", title.charAt(0).toUpperCase() + title.slice(1));
  }

  /** Messages are formatted; calls and results of tools are shown as they came. Long texts are folded. */
  words(step) {
    if (!step.text) return null;
    const spoken = step.kind === "text" || step.kind === "reasoning";
    let body;
    if (spoken) {
      const panel = new TextPanel(step.text, { label: `Step ${step.number}` });
      this.panels.push(panel);
      body = panel.element;
    } else body = el("div.mono.small.verbatim.trace-raw", { dir: "auto" }, laid(step.text));
    const long = step.text.length > LONG_LETTERS || step.text.split("\n").length > LONG;
    if (!long) return body;
    const box = el("div.trace-fold", { data: { folded: "" } }, body);
    const button = el("button.link", { type: "button", "aria-expanded": "false", onclick: () => {
      const open = box.toggleAttribute("data-folded") === false;
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "Show less" : "Show all of it";
    } }, "Show all of it");
    return el("div.trace-long", {}, box, button);
  }

  row(step) {
    const index = this.rows.length;
    const choices = Object.entries(VERDICTS).map(([verdict, { words, shape, tone }]) =>
      keyed(".choice", verdict, { onclick: () => this.on(index, () => this.judge(verdict)), data: { verdict, tone } }, icon(shape), words),
    );
    const reason = el("textarea.textarea", { rows: 1, dir: "auto", ariaLabel: `Reason for step ${step.number}`, value: this.steps[index].reason, placeholder: "Why? (optional)" });
    reason.addEventListener("input", () => {
      this.steps[index].reason = reason.value;
      this.onChange();
    });
    const first = el("span.chip.square.trace-first", { data: { tone: "bad" } }, icon("flag"), "First error");
    const tools = el("span.grade-tools", {}, keyed(".btn.ghost.small", "first_error", { onclick: () => this.on(index, () => this.firstError()) }, icon("flag"), "First error here"), keyed(".btn.ghost.small", "reason", { onclick: () => this.on(index, () => this.write()) }, icon("message-square"), "Reason"));
    const title = this.title(step);
    title.id = `step-${step.number}`;
    title.append(first);
    const actions = el("div.grade-actions", {}, el("div.choices", { role: "group", "aria-labelledby": title.id }, ...choices), tools);
    const body = el("div.grade-main", {}, title, this.words(step), actions, reason);
    const element = el("li.grade.trace-own", { data: { kind: step.kind } }, body);
    element.addEventListener("focusin", () => this.look(index));
    element.addEventListener("click", () => this.look(index));
    this.rows.push({ element, body, choices, reason, first });
    return element;
  }

  // ---- the actions of keys ----

  judge(verdict) {
    const { at } = this;
    const step = this.steps[at];
    step.verdict = step.verdict === verdict ? null : verdict;
    const next = this.steps.findIndex((each, index) => index > at && !each.verdict);
    if (step.verdict && verdict !== "incorrect" && next !== -1) this.at = next;
    this.changed();
    this.say(`Step ${step.step}: ${step.verdict ? VERDICTS[verdict].words : "no verdict"}. ${this.state()}`);
  }

  /** The current step is wrong. Earlier steps without a verdict, and earlier wrong ones, become correct. */
  firstError() {
    const { at } = this;
    this.steps.forEach((each, index) => {
      if (index < at && (!each.verdict || each.verdict === "incorrect")) each.verdict = "correct";
    });
    this.steps[at].verdict = "incorrect";
    this.changed();
    this.say(`The first error is at step ${this.steps[at].step}. Earlier steps without a verdict are correct.`);
  }

  jump() {
    this.jumpTo((index) => !this.steps[index].verdict, "Every step has a verdict.");
  }

  goTo(index) {
    this.at = index;
    this.draw();
    const { step, about, verdict } = this.steps[index];
    this.say(`Step ${step} ${about.title}: ${excerpt(about.text)} ${verdict ? VERDICTS[verdict].words : "No verdict"}.`);
  }

  write() {
    const { reason } = this.rows[this.at];
    reason.hidden = false;
    reason.focus();
  }

  // ---- the page ----

  /** The number of the first step that is wrong, or null. */
  first() {
    return this.steps.find(({ verdict }) => verdict === "incorrect")?.step ?? null;
  }

  state() {
    const first = this.first();
    if (first) return `First error at step ${first}; later steps need no verdict.`;
    const open = this.steps.filter(({ verdict }) => !verdict).length;
    return open ? "" : "No error.";
  }

  draw({ reveal = true } = {}) {
    const first = this.first();
    const done = this.steps.filter(({ verdict }) => verdict).length;
    this.count.textContent = `${done} of ${this.steps.length}`;
    this.progress.value = done;
    this.progress.dataset.state = this.missing().length ? "running" : "finished";
    this.told.textContent = this.state();
    this.steps.forEach((each, index) => {
      const { element, choices, reason, first: chip } = this.rows[index];
      element.dataset.verdict = each.verdict ?? "";
      element.toggleAttribute("data-after", first !== null && each.step > first);
      chip.hidden = each.step !== first;
      for (const choice of choices) choice.ariaPressed = String(choice.dataset.verdict === each.verdict);
      reason.hidden = !each.reason && each.verdict !== "incorrect" && document.activeElement !== reason;
    });
    makeCurrent(this.rows.map(({ element }) => element), this.at, { reveal });
  }

  /** Positions of the steps that need a verdict: those up to the first error, or all. */
  missing() {
    const first = this.first();
    return this.steps.map((each, index) => index).filter((index) => !this.steps[index].verdict && (first === null || this.steps[index].step < first));
  }

  // ---- for the frame ----

  value() {
    const told = this.steps.filter(({ verdict, reason }) => verdict || reason);
    return { note: this.note, steps: told.map(({ step, verdict, reason }) => ({ step, verdict, reason })), first_error: this.first() };
  }

  problems() {
    const open = new Set(this.missing());
    const told = this.steps.map((each, index) => ({ path: `steps.${index}`, message: this.wrong(each, open.has(index)), element: this.rows[index].body }));
    return told.filter(({ message }) => message);
  }

  wrong({ step, verdict, reason }, needed) {
    if (!verdict && needed) return `Step ${step} has no verdict yet.`;
    if (!verdict && reason) return `Step ${step} has a reason but no verdict.`;
    return tooLong(reason);
  }

  locate(path) {
    return this.rows[Number(path.match(/^steps\.(\d+)/)?.[1])]?.body ?? this.form;
  }

  focus() {
    this.rows[this.at]?.choices[0].focus();
  }

  scrollers() {
    return [this.form];
  }

  destroy() {
    for (const panel of this.panels) panel.destroy();
  }
}

/** The first thing to do in a task in which nothing was entered. */
export const begin = () => "Say of each step whether it is correct, wrong, or cannot be assessed.";

export const keys = [
  { action: "correct", key: "y", label: "Correct", run: (widget) => widget.judge("correct") },
  { action: "incorrect", key: "n", label: "Wrong", run: (widget) => widget.judge("incorrect") },
  { action: "cannot_assess", key: "u", label: "Cannot assess", run: (widget) => widget.judge("cannot_assess") },
  { action: "first_error", key: "x", label: "The first error is here: the steps before it are correct", run: (widget) => widget.firstError() },
  { action: "row_down", key: "ArrowDown", label: "Next step", run: (widget) => widget.move(1), repeats: true },
  { action: "row_up", key: "ArrowUp", label: "Previous step", run: (widget) => widget.move(-1), repeats: true },
  { action: "unjudged", key: "o", label: "Next step without a verdict", run: (widget) => widget.jump() },
  { action: "reason", key: "r", label: "Reason for the verdict on this step", run: (widget) => widget.write() },
  ...scrollKeys,
];

export function describe({ steps = [], first_error: first }) {
  if (!steps.length) return "nothing judged yet";
  return first ? `first error at step ${first}` : `no error in ${steps.length} step${steps.length === 1 ? "" : "s"}`;
}
