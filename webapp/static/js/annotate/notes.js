// Notes about the current task, above it. There is one note for each subject, and a new one replaces it.
import { icon } from "../icons.js";
import { el } from "./dom.js";

const SHAPES = { info: () => icon("info"), warn: () => icon("triangle-alert"), bad: () => icon("octagon-alert"), good: () => icon("circle-check") };

export class Notes {
  constructor(root) {
    this.root = root;
  }

  /** `actions`: [[words, run, primary]]; `body`: text or elements. */
  show(subject, { tone = "info", title = "", body = [], actions = [], dismiss = false }) {
    this.drop(subject);
    const buttons = actions.map(([words, run, primary]) =>
      el(primary ? "button.btn.small.primary" : "button.btn.small", { type: "button", onclick: run }, words),
    );
    if (dismiss) {
      const close = el("button.btn.ghost.small.icon-only", { type: "button", ariaLabel: "Dismiss", onclick: () => this.drop(subject) }, icon("x"));
      buttons.push(close);
    }
    const words = el("div.work-note-words", { dir: "auto" }, title ? el("strong", {}, title) : null, ...[body].flat().map((part) => (typeof part === "string" ? el("span", {}, part) : part)));
    const note = el("div.callout.work-note", { role: tone === "bad" || tone === "warn" ? "alert" : "status", data: { tone, subject } },
      SHAPES[tone](), words, el("div.row", {}, ...buttons));
    this.root.append(note);
    return note;
  }

  drop(...subjects) {
    for (const note of [...this.root.children]) if (subjects.includes(note.dataset.subject)) note.remove();
  }

  /** Removes all notes except those on the `kept` subjects. */
  clear(...kept) {
    for (const note of [...this.root.children]) if (!kept.includes(note.dataset.subject)) note.remove();
  }

  /** Clears the words of a note and keeps its place, because the next note on the subject follows and nothing below must move twice. */
  blank(subject) {
    for (const note of this.root.children) if (note.dataset.subject === subject) note.style.visibility = "hidden";
  }
}
