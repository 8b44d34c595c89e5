// Ranking: the order of several responses from best to worst, with ties; or only the best of them. Nothing is placed beforehand:
// digits place the responses one after another, arrows move them, and the pointer drags them.
import { icon } from "../../icons.js";
import { card } from "../cards.js";
import { el } from "../dom.js";
import { keyHint } from "../keymap.js";
import { preview } from "../text.js";
import { joined, placedBefore, rankOf, shifted, tieToggled, tierOf, without } from "./order.js";
import { clamp, keyed, makeCurrent, scrollKeys } from "./parts.js";

const MAX_KEYED = 9;

export default function mount(root, given) {
  return new Ranking(root, given);
}

class Ranking {
  constructor(root, { view, settings, draft, onChange, say, paint = () => {} }) {
    Object.assign(this, { paint, responses: view.responses, best: settings.ranking === "best", onChange, say });
    this.letters = this.responses.map(({ letter }) => letter);
    this.note = draft?.note ?? "";
    this.cannot = draft?.verdict === "cannot_assess";
    this.tiers = (draft?.tiers ?? []).map((tier) => tier.filter((letter) => this.letters.includes(letter))).filter((tier) => tier.length);
    this.keepers = new Map(this.letters.map((letter) => [letter, keyed(".btn.ghost.small.push", "keep", { onclick: () => ((this.current = letter), this.keep()) }, icon("pin"), el("span"))]));
    this.cards = new Map(this.responses.map((response) => [response.letter, card(response, { extra: this.keepers.get(response.letter) })]));
    this.items = new Map(this.responses.map((response, index) => [response.letter, this.item(response, index)]));
    this.current = this.letters[0];
    this.kept = null;
    this.build(root);
    this.draw();
  }

  build(root) {
    this.list = el("ol.order", { ariaLabel: this.best ? "Responses" : "Order, best first" });
    this.reading = el("div.order-reading");
    this.none = keyed(".choice", "cannot_assess", { onclick: () => this.cannotAssess(), data: { tone: "warn" } }, "Cannot assess");
    const title = this.best ? "Which one is best?" : "Best first";
    const how = this.best ? "Press the number of the best response." : "Press their numbers from best to worst, or drag. Arrow keys select a response; with Shift they move it.";
    const tap = this.best ? "Tap the best response." : "Tap one to read it, then place and move it with its buttons.";
    const head = el("header.kind-head", {}, el("h2.label", {}, title), this.none);
    this.form = el("section.work-form.kind-form", { ariaLabel: title }, head, el("p.small.soft.for-keys", {}, how), el("p.small.soft.for-touch", {}, tap), this.list);
    root.append(el("div.work-beside.is-order", {}, this.reading, this.form));
  }

  // ---- the actions of keys ----

  digit(number) {
    const letter = this.letters[number - 1];
    if (!letter) return;
    this.current = letter;
    if (!this.best && this.isPlaced(letter)) this.look(letter);
    else this.place(letter);
  }

  /** Places the response below all placed ones; for best of n, above the rest. */
  place(letter = this.current) {
    if (this.best) return this.set([[letter], this.letters.filter((each) => each !== letter)], letter);
    if (!this.isPlaced(letter)) this.set([...this.tiers, [letter]], letter);
  }

  shift(by, letter = this.current) {
    if (this.best) return;
    if (!this.isPlaced(letter)) return this.place(letter);
    this.set(shifted(this.tiers, letter, by), letter);
  }

  tie(letter = this.current) {
    if (this.best) return;
    const tiers = this.isPlaced(letter) ? this.tiers : [...this.tiers, [letter]];
    this.set(tieToggled(tiers, letter), letter);
  }

  takeOut(letter = this.current) {
    this.set(this.best ? [] : without(this.tiers, letter), letter);
  }

  move(by) {
    const order = this.shownOrder();
    this.look(order[clamp(order.indexOf(this.current) + by, 0, order.length - 1)]);
  }

  look(letter) {
    this.current = letter;
    this.draw();
    this.say(this.words(letter));
  }

  keep() {
    this.kept = this.kept === this.current ? null : this.current;
    this.draw();
    this.say(this.kept ? `Response ${this.kept} is pinned beside the others.` : "No response is pinned.");
  }

  cannotAssess() {
    this.cannot = !this.cannot;
    this.draw();
    this.say(this.cannot ? "Cannot assess." : "Undone.");
    this.onChange();
  }

  // ---- the order ----

  isPlaced(letter) {
    return tierOf(this.tiers, letter) !== -1;
  }

  unplaced() {
    return this.letters.filter((letter) => !this.isPlaced(letter));
  }

  /** The letters from top to bottom, as the list shows them. */
  shownOrder() {
    return this.best ? this.letters : [...this.tiers.flat(), ...this.unplaced()];
  }

  isBest(letter) {
    return this.best && this.tiers[0]?.[0] === letter;
  }

  words(letter) {
    if (this.best) return `Response ${letter}${this.isBest(letter) ? " is the best" : ""}.`;
    if (!this.isPlaced(letter)) return `Response ${letter}, not placed.`;
    const equals = this.tiers[tierOf(this.tiers, letter)].filter((each) => each !== letter);
    return `Response ${letter}: number ${rankOf(this.tiers, letter)}${equals.length ? `, tied with ${equals.join(" and ")}` : ""}.`;
  }

  set(tiers, letter) {
    this.tiers = tiers;
    this.cannot = false;
    this.current = letter;
    this.draw();
    const left = this.unplaced().length;
    this.say(`${this.words(letter)}${left && !this.best ? ` ${left} left.` : ""}`);
    this.onChange();
  }

  // ---- the page ----

  draw() {
    for (const letter of this.letters) this.drawItem(letter);
    const order = this.shownOrder();
    const focused = document.activeElement;
    this.list.replaceChildren(...(this.best ? order.map((letter) => this.items.get(letter).element) : this.tierRows()));
    if (this.list.contains(focused)) focused.focus({ preventScroll: true }); // an element that is moved loses the focus
    this.list.toggleAttribute("data-off", this.cannot);
    this.none.ariaPressed = String(this.cannot);
    makeCurrent(order.map((letter) => this.items.get(letter).element), order.indexOf(this.current));
    this.drawReading();
  }

  tierRows() {
    const element = (letter) => this.items.get(letter).element;
    const rows = this.tiers.flatMap((tier, at) => [this.gap(at), ...tier.map(element)]);
    const left = this.unplaced();
    const words = this.tiers.length ? "Not placed yet" : "Nothing is placed yet";
    const rest = left.length ? [el("li.order-rest.label", {}, words), ...left.map(element)] : [];
    return [...rows, this.gap(this.tiers.length), ...rest];
  }

  /** An item is made once for each response, so that it keeps the focus and its keys when the order changes. */
  item({ letter, text }, index) {
    const rank = el("span.order-rank.num", { ariaHidden: "true" });
    const hint = index < MAX_KEYED ? keyHint(`place_${index + 1}`) : null;
    const state = el("span.visually-hidden");
    const name = el("button.order-name", { type: "button", onclick: () => (this.best ? this.place(letter) : this.look(letter)) }, el("span.order-letter", {}, letter), preview(el("span.order-text.truncate"), text), state, hint);
    const tool = (classes, words, shape, act) => el(`button.btn.ghost.small.icon-only${classes}`, { type: "button", ariaLabel: `${words}: ${letter}`, title: words, onclick: act }, shape);
    const tools = this.best
      ? null
      : el(
          "span.order-tools", {},
          tool(".is-unplaced", "Place next", icon("list-plus"), () => this.place(letter)),
          tool("", "Move up", icon("arrow-up"), () => this.shift(-1, letter)),
          tool("", "Move down", icon("arrow-down"), () => this.shift(1, letter)),
          tool("", "Tie with the response above, or separate", icon("equal"), () => this.tie(letter)),
          tool("", "Remove from the order", icon("x"), () => this.takeOut(letter)),
        );
    const element = el("li.order-item", { data: { letter } }, rank, name, tools);
    if (!this.best) this.makeDraggable(element, letter);
    return { element, rank, name, state };
  }

  drawItem(letter) {
    const { element, rank, name, state } = this.items.get(letter);
    const tier = this.best ? null : this.tiers[tierOf(this.tiers, letter)];
    if (this.best) rank.replaceChildren(...(this.isBest(letter) ? [icon("check")] : []));
    else rank.textContent = !tier ? "" : tier[0] === letter ? String(rankOf(this.tiers, letter)) : "=";
    if (this.best) name.ariaPressed = String(this.isBest(letter));
    state.textContent = this.words(letter);
    element.toggleAttribute("data-best", this.isBest(letter));
    element.toggleAttribute("data-placed", Boolean(tier));
    element.toggleAttribute("data-tied", Boolean(tier && tier.length > 1));
  }

  makeDraggable(item, letter) {
    item.draggable = true;
    item.addEventListener("dragstart", (event) => {
      event.dataTransfer.setData("text/plain", letter);
      event.dataTransfer.effectAllowed = "move";
      this.dragged = letter;
      this.list.setAttribute("data-dragging", "");
    });
    item.addEventListener("dragend", () => this.list.removeAttribute("data-dragging"));
    this.makeTarget(item, () => (this.dragged === letter || !this.isPlaced(letter) ? this.tiers : joined(this.tiers, this.dragged, letter)));
  }

  /** The gap before tier `at`, where a dragged response may be dropped. */
  gap(at) {
    const gap = el("li.order-gap", { ariaHidden: "true" });
    this.makeTarget(gap, () => placedBefore(this.tiers, this.dragged, at));
    return gap;
  }

  makeTarget(element, dropped) {
    element.addEventListener("dragover", (event) => {
      event.preventDefault();
      element.setAttribute("data-over", "");
    });
    element.addEventListener("dragleave", () => element.removeAttribute("data-over"));
    element.addEventListener("drop", (event) => {
      event.preventDefault();
      this.list.removeAttribute("data-dragging");
      if (this.letters.includes(this.dragged)) this.set(dropped(), this.dragged);
    });
  }

  drawReading() {
    const shown = this.kept && this.kept !== this.current ? [this.kept, this.current] : [this.current];
    const told = JSON.stringify([shown, this.kept]);
    if (told === this.read) return; // so that the text stays where the person scrolled it
    this.read = told;
    this.reading.toggleAttribute("data-two", shown.length > 1);
    this.reading.replaceChildren(...shown.map((letter) => this.cards.get(letter).element));
    for (const [letter, button] of this.keepers) {
      button.hidden = letter !== this.kept && letter !== this.current;
      button.ariaPressed = String(letter === this.kept);
      button.children[1].textContent = letter === this.kept ? "Unpin" : "Pin";
    }
    this.paint(this.reading);
  }

  // ---- for the frame ----

  value() {
    if (this.cannot) return { note: this.note, tiers: [], verdict: "cannot_assess" };
    return { note: this.note, tiers: this.tiers.map((tier) => [...tier]), verdict: "ranked" };
  }

  problems() {
    const missing = this.unplaced();
    if (this.cannot || !missing.length) return [];
    const message = this.best ? "Choose the best response, or say that you cannot." : `Not placed yet: ${missing.join(", ")}.`;
    return [{ path: "tiers", message, element: this.list }];
  }

  locate() {
    return this.list;
  }

  focus() {
    this.items.get(this.current)?.name.focus();
  }

  scrollers() {
    return this.reading.querySelectorAll(".work-scroll");
  }

  destroy() {
    for (const { panel } of this.cards.values()) panel.destroy();
  }
}

const inOrder = (settings) => settings.ranking !== "best";
const digits = Array.from({ length: MAX_KEYED }, (_, index) => index + 1);

/** The first thing to do in a task in which nothing was entered. */
export const begin = ({ ranking }) => (ranking === "best" ? "Choose the best response" : "Choose the responses one after the other, the best first") + ", or say that you cannot assess them.";

export const keys = [
  ...digits.map((number) => ({ action: `place_${number}`, key: String(number), label: `Response ${"ABCDEFGHI"[number - 1]}: place it next, or choose it as best`, when: (settings, view) => number <= view.responses.length, run: (widget) => widget.digit(number) })),
  { action: "row_down", key: "ArrowDown", label: "Look at the response below", run: (widget) => widget.move(1), repeats: true },
  { action: "row_up", key: "ArrowUp", label: "Look at the response above", run: (widget) => widget.move(-1), repeats: true },
  { action: "place", key: "Enter", label: "Place the current response, or choose it as best", run: (widget) => widget.place() },
  { action: "better", key: "Shift+ArrowUp", label: "Move it up", when: inOrder, run: (widget) => widget.shift(-1), repeats: true },
  { action: "worse", key: "Shift+ArrowDown", label: "Move it down", when: inOrder, run: (widget) => widget.shift(1), repeats: true },
  { action: "tie", key: "t", label: "Tie with the response above, or separate from it", when: inOrder, run: (widget) => widget.tie() },
  { action: "take_out", key: "Delete", label: "Remove it from the order", run: (widget) => widget.takeOut() },
  { action: "keep", key: "c", label: "Pin this text beside the others", run: (widget) => widget.keep() },
  { action: "cannot_assess", key: "u", label: "Cannot assess", run: (widget) => widget.cannotAssess() },
  ...scrollKeys,
];

export function describe({ tiers = [], verdict }, settings = {}) {
  if (verdict === "cannot_assess") return "Cannot assess";
  if (!tiers.length) return "nothing placed yet";
  return settings.ranking === "best" ? `Best: ${tiers[0].join(" = ")}` : tiers.map((tier) => tier.join(" = ")).join(" > ");
}
