// What was asked: the last turn in full, earlier ones above it; long ones fold.
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
    if (view.reference) this.body.append(this.turn({ role: "Reference answer", content: view.reference }, true));
    this.fold = el("button.link.work-prompt-fold", { type: "button", onclick: () => this.toggle() }, el("span"), keyHint("prompt"));
    this.root.replaceChildren(this.body, this.fold);
    if (view.kind === "pairwise" && view.criteria?.length) this.root.after((this.rubric = rubricOf(view.criteria)));
    this.root.hidden = false;
    this.show();
    this.watch = new ResizeObserver(() => this.measure());
    this.watch.observe(this.body);
    this.measure();
    if (view.prompt.length > 1) this.body.scrollTop = this.body.scrollHeight; // the last turn is what is answered
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
