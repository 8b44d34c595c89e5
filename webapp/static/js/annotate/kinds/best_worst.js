// Best-worst scaling: the best and the worst of a few responses. The first number that is pressed is the best, the second the worst.
import { icon } from "../../icons.js";
import { card } from "../cards.js";
import { el } from "../dom.js";
import { keyHint } from "../keymap.js";
import { preview } from "../text.js";
import { clamp, keyed, makeCurrent, scrollKeys } from "./parts.js";

const MAX_KEYED = 9;
const PARTS = ["best", "worst"];
const WORDS = { best: "Best", worst: "Worst" };
const SHAPES = { best: "arrow-up", worst: "arrow-down" };

export default function mount(root, given) {
  return new BestWorst(root, given);
}

class BestWorst {
  constructor(root, { view, draft, onChange, say, paint = () => {} }) {
    Object.assign(this, { onChange, say });
    this.letters = view.responses.map(({ letter }) => letter);
    this.note = draft?.note ?? "";
    this.cannot = draft?.verdict === "cannot_assess";
    this.chosen = Object.fromEntries(PARTS.map((part) => [part, this.letters.includes(draft?.[part]) ? draft[part] : null]));
    this.current = this.letters[0];
    this.cards = view.responses.map((response) => card(response));
    this.items = new Map(view.responses.map((response, index) => [response.letter, this.item(response, index)]));
    this.build(root);
    this.draw();
    paint(this.reading);
  }

  build(root) {
    this.none = keyed(".choice", "cannot_assess", { onclick: () => this.cannotAssess(), data: { tone: "warn" } }, "Cannot assess");
    const head = el("header.kind-head", {}, el("h2.label", {}, "Which is best, which is worst?"), this.none);
    const how = el("p.small.soft.for-keys", {}, "Press the number of the best response, then that of the worst. Press a number again to undo it.");
    const tap = el("p.small.soft.for-touch", {}, "Tap Best at one response and Worst at another.");
    this.list = el("ol.order", { ariaLabel: "Responses" }, ...[...this.items.values()].map(({ element }) => element));
    this.reading = el("div.order-reading", { data: { two: "" } }, ...this.cards.map(({ element }) => element));
    const form = el("section.work-form.kind-form", { ariaLabel: "Best and worst" }, head, how, tap, this.list);
    root.append(el("div.work-beside.is-order", {}, this.reading, form));
  }

  item({ letter, text }, index) {
    const hint = index < MAX_KEYED ? keyHint(`choose_${index + 1}`) : null;
    const state = el("span.visually-hidden");
    const rank = el("span.order-rank", { ariaHidden: "true" });
    const name = el("button.order-name", { type: "button", onclick: () => this.look(letter) }, el("span.order-letter", {}, letter), preview(el("span.order-text.truncate"), text), state, hint);
    const buttons = Object.fromEntries(PARTS.map((part) => [part, el("button.choice", { type: "button", ariaLabel: `${WORDS[part]}: ${letter}`, onclick: () => this.choose(part, letter), data: { tone: part === "best" ? "good" : "bad" } }, WORDS[part])]));
    const choice = el("span.row.nowrap.gap-1", {}, ...Object.values(buttons));
    choice.style.padding = "var(--s1)";
    const element = el("li.order-item", { data: { letter } }, rank, name, choice);
    return { element, rank, name, state, buttons };
  }

  // ---- the actions of keys ----

  /** Chooses first the best, then the worst. A response that is chosen already is no longer chosen. */
  digit(number) {
    const letter = this.letters[number - 1];
    if (!letter) return;
    const has = PARTS.find((part) => this.chosen[part] === letter);
    this.choose(has ?? (this.chosen.best === null ? "best" : "worst"), letter);
  }

  choose(part, letter = this.current) {
    const other = part === "best" ? "worst" : "best";
    this.chosen[part] = this.chosen[part] === letter ? null : letter;
    if (this.chosen[other] === letter) this.chosen[other] = null;
    this.cannot = false;
    this.current = letter;
    this.draw();
    this.say(this.words(letter));
    this.onChange();
  }

  move(by) {
    this.look(this.letters[clamp(this.letters.indexOf(this.current) + by, 0, this.letters.length - 1)]);
  }

  look(letter) {
    this.current = letter;
    this.draw();
    this.cards[this.letters.indexOf(letter)].element.scrollIntoView({ block: "nearest" });
    this.say(this.words(letter));
  }

  cannotAssess() {
    this.cannot = !this.cannot;
    if (this.cannot) this.chosen = { best: null, worst: null };
    this.draw();
    this.say(this.cannot ? "Cannot assess." : "Undone.");
    this.onChange();
  }

  // ---- the page ----

  words(letter) {
    const part = PARTS.find((each) => this.chosen[each] === letter);
    return `Response ${letter}${part ? ` is the ${part}` : ""}.`;
  }

  draw() {
    for (const [letter, { element, rank, state, buttons }] of this.items) {
      const part = PARTS.find((each) => this.chosen[each] === letter);
      rank.replaceChildren(...(part ? [icon(SHAPES[part])] : []));
      state.textContent = this.words(letter);
      element.toggleAttribute("data-best", part === "best");
      element.toggleAttribute("data-worst", part === "worst");
      element.toggleAttribute("data-placed", Boolean(part));
      for (const each of PARTS) buttons[each].ariaPressed = String(part === each);
    }
    this.list.toggleAttribute("data-off", this.cannot);
    this.none.ariaPressed = String(this.cannot);
    makeCurrent([...this.items.values()].map(({ element }) => element), this.letters.indexOf(this.current));
  }

  // ---- for the frame ----

  value() {
    return { note: this.note, ...this.chosen, verdict: this.cannot ? "cannot_assess" : "chosen" };
  }

  problems() {
    const missing = PARTS.filter((part) => this.chosen[part] === null);
    if (this.cannot || !missing.length) return [];
    return [{ path: missing[0], message: `Choose the ${missing.join(" and the ")} response, or say that you cannot.`, element: this.list }];
  }

  locate() {
    return this.list;
  }

  focus() {
    this.items.get(this.current)?.name.focus();
  }

  scrollers() {
    return [this.cards[this.letters.indexOf(this.current)].element.querySelector(".work-scroll")].filter(Boolean);
  }

  destroy() {
    for (const { panel } of this.cards) panel.destroy();
  }
}

const digits = Array.from({ length: MAX_KEYED }, (_, index) => index + 1);

/** The first thing to do in a task in which nothing was entered. */
export const begin = () => "Choose the best response and then the worst, or say that you cannot assess them.";

export const keys = [
  ...digits.map((number) => ({ action: `choose_${number}`, key: String(number), label: `Response ${"ABCDEFGHI"[number - 1]}: the best one, then the worst one`, when: (settings, view) => number <= view.responses.length, run: (widget) => widget.digit(number) })),
  { action: "row_down", key: "ArrowDown", label: "Look at the response below", run: (widget) => widget.move(1), repeats: true },
  { action: "row_up", key: "ArrowUp", label: "Look at the response above", run: (widget) => widget.move(-1), repeats: true },
  { action: "best", key: "b", label: "The current response is the best", run: (widget) => widget.choose("best") },
  { action: "worst", key: "w", label: "The current response is the worst", run: (widget) => widget.choose("worst") },
  { action: "cannot_assess", key: "u", label: "Cannot assess", run: (widget) => widget.cannotAssess() },
  ...scrollKeys,
];

export function describe({ best, worst, verdict }) {
  if (verdict === "cannot_assess") return "Cannot assess";
  return `Best: ${best ?? "not chosen"}, worst: ${worst ?? "not chosen"}`;
}
