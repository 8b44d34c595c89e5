// What was asked, open at the last question; earlier turns stand above it, long ones fold. A reference answer has a card of its
// own, folded: who judges has read the question before it.
import { el, recall, remember } from "./dom.js";
import { keyHint } from "./keymap.js";
import { TextPanel } from "./text.js";

const WHO = { system: "System", user: "User", assistant: "Assistant", tool: "Tool" };

/** What the pair is to be judged by, in a study: it stays in sight, however long the prompt is. */
function rubricOf(criteria) {
  const item = ({ text, points }) => el("li", {}, points < 0 ? el("span.chip", { data: { tone: "warn" } }, "to avoid") : null, " ", text);
  return el("div.work-rubric.work-scroll", { tabIndex: 0, role: "region", ariaLabel: "Rubric" }, el("p.label", {}, "Judge by this rubric"), el("ol", {}, ...criteria.map(item)));
}

export class PromptPane {
  constructor(root) {
    this.root = root;
    this.panels = [];
    this.open = recall("prompt-open", false);
  }

  draw(view) {
    this.clear();
    const turns = view.prompt.map((message) => this.turn(message, view.prompt.length > 1));
    this.body = el("div.work-prompt-body.work-scroll", { tabIndex: 0, role: "region", ariaLabel: "Prompt" }, ...turns);
    this.fold = el("button.link.work-prompt-fold", { type: "button", onclick: () => this.toggle() }, el("span"), keyHint("prompt"));
    this.root.replaceChildren(el("div.work-prompt-box", {}, this.body, this.fold), ...(view.reference ? [this.reference(view.reference)] : []));
    if (view.kind === "pairwise" && view.criteria?.length) this.root.after((this.rubric = rubricOf(view.criteria)));
    this.root.hidden = false;
    this.show();
    this.asked = turns[Math.max(0, view.prompt.findLastIndex((message) => message.role === "user"))];
    this.moved = false;
    for (const kind of ["wheel", "pointerdown", "keydown", "touchstart"]) this.body.addEventListener(kind, () => (this.moved = true), { passive: true });
    this.watch = new ResizeObserver(() => this.settle());
    for (const each of [this.body, ...turns]) this.watch.observe(each); // formulas and fonts come later, and move what is below
    this.settle();
  }

  /** At the question, until somebody scrolls. */
  settle() {
    this.measure();
    if (!this.moved && this.panels.length > 1) this.body.scrollTop = this.asked.offsetTop - this.body.firstElementChild.offsetTop;
  }

  reference(content) {
    const panel = new TextPanel(content, {});
    this.panels.push(panel);
    const body = el("div.work-reference-body.work-scroll", { tabIndex: 0, role: "region", ariaLabel: "Reference answer" }, panel.element);
    return el("details.work-reference", {}, el("summary", {}, "Reference answer"), body);
  }

  turn({ role, content }, named) {
    const panel = new TextPanel(content, {});
    this.panels.push(panel);
    return el("div.work-turn", { data: { role } }, named ? el("p.label", {}, WHO[role] ?? role) : null, panel.element);
  }

  toggle() {
    this.open = !this.open;
    remember("prompt-open", this.open);
    this.show();
    this.measure();
  }

  show() {
    this.root.dataset.open = this.open;
    this.fold.firstChild.textContent = this.open ? "Show less" : "Show all of it";
    this.fold.setAttribute("aria-expanded", String(this.open));
  }

  measure() {
    this.fold.hidden = !this.open && this.body.scrollHeight <= this.body.clientHeight + 4;
    this.root.toggleAttribute("data-long", !this.open && !this.fold.hidden);
  }

  clear() {
    this.watch?.disconnect();
    this.rubric?.remove();
    for (const panel of this.panels) panel.destroy();
    this.panels = [];
    this.root.hidden = true;
  }
}
