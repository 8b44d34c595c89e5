// An ordered list of atomic reasons. Each is a line of text with at most one passage of a response. The list works from the
// keyboard: Enter makes the next line, Ctrl/Cmd+Shift+arrows move a line, and Backspace in an empty line removes it.
import { icon } from "../icons.js";
import { el } from "./dom.js";
import { isMac, keyHint } from "./keymap.js";
import { tooLong } from "./text.js";

const MAX_REASONS = 50;
const MAX_LENGTH = 2000;
const MOD = isMac ? "⌘" : "Ctrl";

export class ReasonList {
  /** `changed()` at every change; `quote(reason)` gives the words of its passage; `chosen(reason)` when a person goes to one. */
  constructor({ reasons = [], changed, quote, chosen = () => {}, say, title = "Reasons", hint = "" }) {
    Object.assign(this, { changed, quote, chosen, say });
    this.rows = [];
    this.current = null;
    this.list = el("ol.work-reasons", { ariaLabel: title });
    this.add = el("button.btn.small", { type: "button", onclick: () => this.insert() }, icon("plus"), "Add a reason", keyHint("reason"));
    this.empty = el("p.muted.small", {}, hint);
    const head = el("header.work-reasons-head", {}, el("h2.label", {}, title), this.empty, this.add);
    this.element = el("section.work-reasons-part", {}, head, this.list);
    for (const reason of reasons) this.insert({ ...reason, quiet: true });
    this.number();
  }

  /** The reasons, without lines that were left empty. A passage whose words are still missing is kept in the draft. */
  value() {
    return this.rows.map(({ reason }) => ({ ...reason, text: reason.text.trim() })).filter((reason) => reason.text || reason.response);
  }

  /** Problems: passages without words, which would be lost, and texts that are too long. */
  problems() {
    return this.rows.map(({ reason, input }) => ({ path: "reasons", message: wrong(reason), element: input })).filter(({ message }) => message);
  }

  insert({ text = "", response = null, start = null, end = null, after = null, quiet = false } = {}) {
    if (this.rows.length >= MAX_REASONS) return this.say(`At most ${MAX_REASONS} reasons.`);
    const row = this.row({ text, response, start, end });
    const at = after ? this.rows.indexOf(after) + 1 : this.rows.length;
    this.rows.splice(at, 0, row);
    this.list.insertBefore(row.element, this.rows[at + 1]?.element ?? null);
    this.number();
    if (quiet) return row;
    this.look(row);
    row.input.focus();
    if (text || response) this.changed();
    return row;
  }

  row(reason) {
    const input = el("textarea.work-reason-text", { rows: 1, value: reason.text, dir: "auto", placeholder: "One reason, in one sentence" });
    const span = el("span.work-reason-span");
    const tools = el("span.work-reason-tools");
    const element = el("li.work-reason", {}, el("span.work-reason-number.num", { ariaHidden: "true" }), el("div.work-reason-body", {}, input, span), tools);
    const row = { reason, input, span, element };
    for (const [name, label, run] of [["arrow-up", "Move up", () => this.move(row, -1)], ["arrow-down", "Move down", () => this.move(row, 1)], ["trash-2", "Delete", () => this.remove(row)]])
      tools.append(el("button.btn.ghost.small.icon-only", { type: "button", title: label, onclick: run, data: { label } }, SHAPES[name]()));
    input.addEventListener("input", () => {
      reason.text = input.value;
      this.changed();
    });
    input.addEventListener("focus", () => this.look(row));
    input.addEventListener("keydown", (event) => this.press(event, row));
    this.drawSpan(row);
    return row;
  }

  press(event, row) {
    if (event.altKey || event.isComposing) return;
    const mod = event.ctrlKey || event.metaKey;
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const { input } = row;
    if (event.key === "Enter" && !mod && !event.shiftKey) {
      if (input.value.trim()) this.insert({ after: row });
    } else if (step && mod && event.shiftKey) this.move(row, step, true);
    else if (step && !mod && !event.shiftKey && this.atEdge(input, step)) this.beside(row, step)?.input.focus();
    else if (event.key === "Backspace" && !mod && !input.value && !event.repeat) this.remove(row);
    else if (event.key === "Backspace" && mod && event.shiftKey) this.remove(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  atEdge(input, step) {
    const text = step < 0 ? input.value.slice(0, input.selectionStart) : input.value.slice(input.selectionEnd);
    return !text.includes("\n") && (step < 0 ? input.selectionStart === 0 : input.selectionEnd === input.value.length);
  }

  beside(row, step) {
    return this.rows[this.rows.indexOf(row) + step];
  }

  move(row, step, keepFocus = false) {
    const at = this.rows.indexOf(row);
    if (!this.rows[at + step]) return;
    this.rows.splice(at, 1);
    this.rows.splice(at + step, 0, row);
    this.list.insertBefore(row.element, this.rows[at + step + 1]?.element ?? null);
    this.number();
    if (keepFocus) row.input.focus();
    this.say(`Reason moved to place ${at + step + 1} of ${this.rows.length}.`);
    this.changed();
  }

  remove(row) {
    const near = this.beside(row, -1) ?? this.beside(row, 1);
    this.rows = this.rows.filter((each) => each !== row);
    const focused = row.element.contains(document.activeElement);
    row.element.remove();
    if (this.current === row) this.look(null);
    this.number();
    if (focused) (near?.input ?? document.getElementById("work-main")).focus();
    this.say("Reason deleted.");
    this.changed();
  }

  /** Adds a passage to the current reason, or makes a new reason for it. */
  attach(span) {
    if (!this.current) return this.insert(span);
    Object.assign(this.current.reason, { response: span.response, start: span.start, end: span.end });
    this.drawSpan(this.current);
    this.chosen(this.current.reason);
    this.changed();
  }

  look(row) {
    this.current = row;
    for (const each of this.rows) each.element.toggleAttribute("data-current", each === row);
    this.chosen(row?.reason ?? null);
  }

  edit() {
    const row = this.current ?? this.rows.at(-1);
    if (row) row.input.focus();
    else this.insert();
  }

  drawSpan(row) {
    const { reason, span } = row;
    span.hidden = !reason.response;
    if (!reason.response) return span.replaceChildren();
    const words = this.quote(reason);
    span.replaceChildren(
      el("span.work-span-letter", {}, reason.response),
      el("q.truncate", { dir: "auto", title: words }, words),
      el("button.btn.ghost.small.icon-only", { type: "button", ariaLabel: `Remove the passage of ${reason.response}`, onclick: () => this.detach(row) }, icon("x")),
    );
  }

  detach(row) {
    Object.assign(row.reason, { response: null, start: null, end: null });
    this.drawSpan(row);
    this.chosen(row.reason);
    row.input.focus();
    this.changed();
  }

  number() {
    this.empty.hidden = this.rows.length > 0;
    this.rows.forEach(({ element, input }, index) => {
      element.querySelector(".work-reason-number").textContent = `${index + 1}`;
      input.setAttribute("aria-label", `Reason ${index + 1}`);
      for (const button of element.querySelectorAll("[data-label]")) button.setAttribute("aria-label", `${button.dataset.label} reason ${index + 1}`);
      input.title = `Enter: next reason · ${MOD}+Shift+↑↓: move · ${MOD}+Shift+⌫: delete · Esc: back to the task`;
    });
  }

  /** Every passage of `letter`: [spans, index of the current one]. */
  marks(letter) {
    const mine = this.rows.filter(({ reason }) => reason.response === letter);
    return [mine.map(({ reason }) => reason), mine.indexOf(this.current)];
  }
}

function wrong({ text, response }) {
  if (!text.trim() && response) return "Say in words what this passage shows, or remove it.";
  return tooLong(text.trim(), MAX_LENGTH);
}

const SHAPES = { "arrow-up": () => icon("arrow-up"), "arrow-down": () => icon("arrow-down"), "trash-2": () => icon("trash-2") };
