// A rationale that is cut into atomic reasons: the text on one side, the list on the other. If there is no text, the person writes it.
import { card, passageButton } from "../cards.js";
import { el } from "../dom.js";
import { keyHint } from "../keymap.js";
import { passageOf } from "../picker.js";
import { ReasonList } from "../reasons.js";
import { cut, tooLong } from "../text.js";

export default function mount(root, options) {
  return new Rationale(root, { ...options, draft: options.draft ?? {} });
}

class Rationale {
  constructor(root, { view, draft, onChange, say }) {
    Object.assign(this, { view, onChange, say, note: draft.note ?? "" });
    this.given = view.rationale;
    this.cards = view.responses.map((response) => {
      const tie = passageButton(`attach_${response.letter.toLowerCase()}`, "Add to reason", (byKey) => this.attach(response.letter,
      !byKey));
      return card(response, { extra: tie });
    });
    this.reasons = new ReasonList({
      reasons: draft.reasons ?? [], say, changed: () => this.changed(),
      title: "Atomic reasons",
      hint: "One judgement each, such as “B names the wrong year”.",
      quote: (reason) => cut(this.cardOf(reason.response)?.panel.text ?? "", reason.start, reason.end),
      chosen: () => this.mark(),
    });
    root.classList.add("work-beside", "work-rationale");
    root.append(this.drawSource(draft.source ?? ""), el("div.work-form", {}, this.reasons.element, ...this.drawResponses()));
    this.mark();
  }

  drawSource(own) {
    if (this.given !== null) {
      const cutting = passageButton("take", "Make it a reason", (byKey) => this.take(!byKey));
      this.source = card({ letter: "Rationale", text: this.given }, { title: "Rationale", extra: cutting });
      return this.source.element;
    }
    this.own = el("textarea.textarea.work-own", {
      value: own, dir: "auto", id: "work-own", oninput: () => this.changed(),
      placeholder: "Which response is better, and why? Write as you would tell a colleague, then cut it into reasons.",
    });
    const help = el("p.help", {}, "Select a part of it, then press Esc and T, or the button.");
    const cutting = el("button.btn.small", { type: "button", onclick: () => this.take() }, "Selection to reason", keyHint("take"));
    return el("section.work-card", {}, el("header.work-card-head", {}, el("label.work-letter", { htmlFor: "work-own" }, "Your rationale")),
      el("div.work-own-body", {}, this.own, el("div.row", {}, help, cutting)));
  }

  drawResponses() {
    if (!this.cards.length) return [];
    const folds = this.cards.map(({ element }) => element);
    return [el("h2.label", {}, "The responses"), ...folds];
  }

  cardOf(letter) {
    return this.cards.find((each) => each.letter === letter);
  }

  /** The selected part of the text becomes a reason. Without a selection, the person chooses it by keys. */
  take(pointer = false) {
    if (this.own) {
      const { value, selectionStart, selectionEnd } = this.own;
      const part = value.slice(selectionStart, selectionEnd).trim();
      return this.reasons.insert({ text: part });
    }
    passageOf(this.source, { key: "t", say: this.say, pointer, take: ({ quote }) => this.insert(quote) });
  }

  insert(words) {
    this.reasons.insert({ text: words.replace(/\s+/g, " ") });
    this.say(`New reason: ${words}`);
  }

  attach(letter, pointer = false) {
    const one = this.cardOf(letter);
    if (!one) return;
    const take = ({ start, end, quote }) => {
      this.reasons.attach({ response: letter, start, end });
      this.say(`Passage of ${letter}: ${quote}`);
    };
    passageOf(one, { key: letter.toLowerCase(), say: this.say, pointer, take });
  }

  changed() {
    this.mark();
    this.onChange();
  }

  mark() {
    for (const { panel, letter } of this.cards) panel.mark(...this.reasons.marks(letter));
  }

  value() {
    return { source: this.given ?? this.own.value, reasons: this.reasons.value(), note: this.note };
  }

  problems() {
    const found = [];
    if (this.own && !this.own.value.trim()) found.push({ path: "source", message: "Write the rationale first.", element: this.own });
    const long = this.own && tooLong(this.own.value);
    if (long) found.push({ path: "source", message: long, element: this.own });
    if (!this.reasons.value().some((reason) => reason.text)) found.push({ path: "reasons", message: "Cut it into at least one reason.", element: this.reasons.add });
    return [...found, ...this.reasons.problems()];
  }

  locate(path) {
    return path.startsWith("source") ? (this.own ?? this.source.element) : this.reasons.add;
  }

  focus() {
    (this.own ?? this.reasons.add).focus();
  }

  destroy() {
    for (const { panel } of this.cards) panel.destroy();
    this.source?.panel.destroy();
  }
}

/** The first thing to do in a task in which nothing was entered. */
export const begin = (_, { rationale }) => (rationale ? "Cut the rationale into reasons, one judgement each." : "Write the rationale, and then cut it into reasons.");

export const keys = [
  { action: "reason", key: "r", label: "New reason", run: (widget) => widget.reasons.insert() },
  { action: "take", key: "t", label: "Make the selection a reason, or choose one", run: (widget) => widget.take() },
  { action: "edit", key: "e", label: "Edit the current reason", run: (widget) => widget.reasons.edit() },
  { action: "attach_a", key: "a", label: "Add a passage of A to the reason", run: (widget) => widget.attach("A") },
  { action: "attach_b", key: "b", label: "Add a passage of B to the reason", run: (widget) => widget.attach("B") },
];

export function describe({ source = "", reasons = [] }) {
  const listed = reasons.map((reason, index) => `${index + 1}. ${reason.text}`).join(" ");
  return listed || source || "No reasons yet";
}
