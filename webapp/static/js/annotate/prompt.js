// The prompt, scrolled to the last question. Earlier turns are above it, and long ones are folded. A reference answer has its own
// card, which is folded, so that people read the question first.
import { el, recall, remember } from "./dom.js";
import { keyHint } from "./keymap.js";
import { TextPanel } from "./text.js";

const WHO = { system: "System", user: "User", assistant: "Assistant", tool: "Tool" };

/** The rubric of a study by which the pair is to be judged. It stays visible beside any prompt. */
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
    for (const each of [this.body, ...turns]) this.watch.observe(each); // formulas and fonts load later, and move the text below
    this.settle();
  }

  /** Stays at the question until somebody scrolls. */
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
