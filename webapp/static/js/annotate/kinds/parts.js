// Shared parts of the widgets in this folder: the words of a verdict, points, the current row, a shortened line.
import { icon } from "../../icons.js";
import { card } from "../cards.js";
import { el } from "../dom.js";
import { keyHint } from "../keymap.js";

/** A single response beside a form. */
export function soleCard(response) {
  const made = card({ letter: "Response", text: response?.text ?? "" }, { title: "Response" });
  made.element.querySelector(".visually-hidden").remove(); // the heading says this already
  return made;
}

/** A button that shows the key of `action`. `options` as for `el`; `classes` with leading dots. */
export function keyed(classes, action, options, ...children) {
  return el(`button${classes}`, { type: "button", ...options }, ...children, keyHint(action));
}

/** The keys that scroll the texts, which are the same in every kind. `widget.scrollers()` gives the elements to scroll. */
export const scrollKeys = [
  { action: "scroll_down", key: "j", label: "Scroll the text down", run: (widget) => scroll(widget, 0.8), repeats: true },
  { action: "scroll_up", key: "k", label: "Scroll the text up", run: (widget) => scroll(widget, -0.8), repeats: true },
];

function scroll(widget, share) {
  for (const scroller of widget.scrollers()) scroller.scrollBy({ top: share * scroller.clientHeight });
}

/** Marks one row as the one on which keys act. The focus stays where it is, so that keys continue to work. */
export function makeCurrent(rows, at, { reveal = true } = {}) {
  rows.forEach((row, index) => {
    row.toggleAttribute("data-current", index === at);
    if (index === at) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  });
  if (reveal) rows[at]?.scrollIntoView({ block: "nearest" });
}

/** A form of rows. Keys act on the row at `at`. A kind gives it `rows`, `onChange`, `draw()` and `goTo(index)`. */
export class RowForm {
  on(index, act) {
    this.at = index;
    act();
  }

  look(index) {
    if (this.at === index) return;
    this.at = index;
    this.draw({ reveal: false });
  }

  move(by) {
    this.goTo(clamp(this.at + by, 0, Math.max(0, this.rows.length - 1)));
  }

  /** Goes to the next row for which `isOpen(index)`; after the last row it starts again at the first. Says `none` if there is no such row.
  */
  jumpTo(isOpen, none) {
    const order = this.rows.map((_, index) => (this.at + 1 + index) % this.rows.length);
    const open = order.find(isOpen);
    if (open === undefined) this.say(none);
    else this.goTo(open);
  }

  changed() {
    this.draw();
    this.onChange();
  }
}

export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

export const VERDICTS = {
  met: { words: "Met", shape: () => icon("check"), tone: "good" },
  not_met: { words: "Not met", shape: () => icon("x"), tone: "bad" },
  cannot_assess: { words: "Cannot assess", shape: () => icon("circle-question-mark"), tone: "warn" },
};

/** "+5", "−3": with a real minus sign. */
export const signed = (points) => (points > 0 ? `+${points}` : `\u2212${Math.abs(points)}`);

export const pointsChip = (points) =>
  el("span.chip.square.num", { title: points > 0 ? "Points when met" : "Points lost when met", data: { tone: points > 0 ? "good" : "bad" } }, signed(points));

/** One line of `text`, cut at `most` characters. */
export function excerpt(text, most = 120) {
  const letters = [...text.replace(/\s+/g, " ").trim()];
  return letters.length > most ? `${letters.slice(0, most).join("")}…` : letters.join("");
}

/** Calls `work` when nothing has happened for `wait` ms. */
export function debounced(work, wait) {
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(work, wait);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
