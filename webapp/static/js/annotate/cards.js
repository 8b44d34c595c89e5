// Responses as cards: a letter and the text, which scrolls by itself; between two cards there is a line to drag.
import { icon } from "../icons.js";
import { el, recall, remember } from "./dom.js";
import { keyHint } from "./keymap.js";
import { splitter } from "./split.js";
import { TextPanel } from "./text.js";

/** { element, panel, scroller, letter } of a response { letter, text }. */
export function card({ letter, text }, { title = `Response ${letter}`, extra = null } = {}) {
  const panel = new TextPanel(text, { side: letter });
  const scroller = el("div.work-card-body.work-scroll", { tabIndex: 0, role: "region", ariaLabel: title }, panel.element);
  const size = el("span.tiny.muted.num", {}, sizeOf(text));
  const head = el("header.work-card-head", {}, el("h2.work-letter", {}, letter), el("span.visually-hidden", {}, title), size, extra);
  return { element: el("article.work-card", { data: { letter } }, head, scroller), panel, scroller, letter };
}

/** The number of words, or of characters if the script has no spaces between words. */
function sizeOf(text) {
  const letters = [...text.trim()];
  const together = text.match(/[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]/g)?.length ?? 0;
  const count = together * 5 > letters.length ? letters.length : (text.match(/\S+/g)?.length ?? 0);
  const noun = together * 5 > letters.length ? "character" : "word";
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** A button for a card's head that takes the selected passage; `taken(byKey)`. The selection stays when it is pressed. */
export function passageButton(action, words, taken) {
  return el("button.btn.ghost.small.push.work-passage", {
    type: "button",
    onpointerdown: (event) => event.preventDefault(),
    onclick: (event) => taken(event.detail === 0),
  }, icon("highlighter"), el("span", {}, words), keyHint(action));
}

/** Two cards side by side. `linked`: they scroll together, in proportion to their lengths. */
export function pair(responses, { toggleKey, extra = () => null }) {
  const cards = responses.map((response) => card(response, { extra: extra(response.letter) }));
  const element = el("div.work-pair");
  element.append(cards[0].element, splitter(element, { name: "pair", label: "Width of response A", start: 50 }), cards[1].element);
  let linked = recall("linked", true);
  let leader = null;
  let release = 0;

  const link = el("button.btn.ghost.small.work-arrange", { type: "button", onclick: toggle }, icon("link-2"), el("span", {}, "Scroll together"), keyHint(toggleKey));
  function toggle() {
    linked = !linked;
    remember("linked", linked);
    paint();
  }
  function paint() {
    link.ariaPressed = String(linked);
    link.title = "Scroll together: one response follows the other";
  }

  for (const one of cards)
    one.scroller.addEventListener("scroll", () => {
      if (!linked || (leader && leader !== one)) return;
      leader = one; // the scroll event of the other card must not move the first one
      clearTimeout(release);
      release = setTimeout(() => (leader = null), 120);
      const share = one.scroller.scrollTop / Math.max(1, one.scroller.scrollHeight - one.scroller.clientHeight);
      const other = cards.find((each) => each !== one).scroller;
      other.scrollTop = share * (other.scrollHeight - other.clientHeight);
    }, { passive: true });
  paint();

  return {
    element, cards, link, toggle,
    card: (letter) => cards.find((each) => each.letter === letter),
    /** If they scroll together, the longer one moves by most of its height: the other way round, parts of it would be passed over. */
    scroll(by) {
      const hidden = ({ scroller }) => scroller.scrollHeight - scroller.clientHeight;
      const moved = linked ? [cards.toSorted((a, b) => hidden(b) - hidden(a))[0]] : cards;
      for (const { scroller } of moved) scroller.scrollBy({ top: by * scroller.clientHeight * 0.8, behavior: "auto" });
    },
    destroy: () => cards.forEach(({ panel }) => panel.destroy()),
  };
}
