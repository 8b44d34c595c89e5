// Selects a passage without a pointer: left and right move by a word, up and down by a sentence, and Shift makes it longer.
import { toast } from "../toast.js";
import { el } from "./dom.js";

const HOW = "Choose a passage: ← → by word, ↑ ↓ by sentence, with Shift longer. Enter takes it, Esc leaves.";

/** [[from, to], ...]: the words or sentences of a text, in any language. */
function units(text, granularity) {
  const parts = [...new Intl.Segmenter(undefined, { granularity }).segment(text)];
  return parts
    .filter((part) => (granularity === "word" ? part.isWordLike : part.segment.trim()))
    .map((part) => [part.index, part.index + part.segment.trimEnd().length]);
}

/** The unit after or before `head`. The sentence around it counts as the next one in both directions. */
function neighbour(list, [from, to], unit, forward) {
  const other = ([begin, end]) => begin !== from || end !== to;
  if (unit === "word") return forward ? list.find(([begin]) => begin >= to) : list.findLast(([, end]) => end <= from);
  return forward
    ? list.find((each) => each[1] >= to && other(each))
    : list.findLast((each) => each[0] <= from && other(each));
}

/**
 * Lets the person choose a passage of `panel`, a TextPanel, among what it shows. `say` tells a screen reader what is chosen;
 * `done(span or null)` is called once: Enter or `key` takes the passage; Escape and leaving do not.
 */
export function pick(panel, { key = "", say, done }) {
  const words = units(panel.text, "word").map((each) => panel.seen(each));
  const lists = {
    word: words.filter((each, index) => each && each[0] !== words[index - 1]?.[0]), // a formula is one word
    sentence: units(panel.text, "sentence").filter((each) => panel.seen(each)),
  };
  if (!lists.word.length) return done(null);
  const place = panel.element.closest("[tabindex]") ?? panel.element;
  const rtl = getComputedStyle(panel.element).direction === "rtl";
  const arrows = {
    ArrowLeft: ["word", rtl], ArrowRight: ["word", !rtl], ArrowUp: ["sentence", false], ArrowDown: ["sentence", true],
  };
  const note = el("p.work-picking", {}, HOW);
  let anchor = firstSeen(panel, lists.word);
  let head = anchor;

  const chosen = () => panel.span(Math.min(anchor[0], head[0]), Math.max(anchor[1], head[1]));

  function draw() {
    const span = chosen();
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(panel.rangeOf(span));
    panel.reveal(span);
    say(span.quote);
  }

  function move(unit, forward, extend) {
    head = neighbour(lists[unit], head, unit, forward) ?? head;
    if (!extend) anchor = head;
    draw();
  }

  function finish(span) {
    place.removeEventListener("keydown", press);
    place.removeEventListener("blur", leave);
    delete place.dataset.arrows;
    delete place.dataset.picking;
    note.remove();
    getSelection().removeAllRanges();
    done(span);
  }

  function press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (arrows[event.key]) move(...arrows[event.key], event.shiftKey);
    else if (event.key === "Enter" || (key && event.key === key)) finish(chosen());
    else if (event.key === "Escape") finish(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const leave = () => finish(null);
  place.dataset.arrows = "";
  place.dataset.picking = key;
  place.before(note);
  place.focus({ preventScroll: true });
  place.addEventListener("keydown", press);
  place.addEventListener("blur", leave);
  draw();
}

/** The first visible word, so that nobody has to walk through text above it. */
function firstSeen(panel, words) {
  const box = panel.element.closest(".work-scroll")?.getBoundingClientRect();
  const visible = words.find(([from, to]) => box && panel.rangeOf(panel.span(from, to)).getBoundingClientRect().top >= box.top);
  return visible ?? words[0];
}

/**
 * The passage selected in a card (of cards.js), or one chosen by keyboard: `take({ start, end, quote })`. `key` is the key that was
 * pressed, and also takes the passage. `pointer`: it was asked for with a pointer, so arrows would not help.
 */
export function passageOf({ panel, scroller }, { key, say, take, pointer = false }) {
  const span = panel.selection();
  if (span) {
    getSelection().removeAllRanges();
    return take(span);
  }
  if (pointer) return toast("Select some words in the text first.");
  pick(panel, {
    key, say,
    done(chosen) {
      if (document.activeElement === scroller) document.getElementById("work-main").focus({ preventScroll: true });
      if (chosen) take(chosen);
    },
  });
}
