// A text in which people read, select and mark single characters, either formatted or as it was written. Places count code points of
// the text as it was written, as on the server. The server makes the formatted view.
import { json } from "../http.js";
import { toast } from "../toast.js";
import { align, toRange, toSource } from "./aligned.js";
import { el, recall, remember } from "./dom.js";
import { fetchMath, renderMath } from "../math.js";
import { points, tooLong as longer } from "../toolong.js";

const panels = new Set();
const pages = new Map(); // text -> promise of its HTML; the same for texts within a line, and for the beginnings of texts
const lines = new Map();
const previews = new Map();
const shown = new WeakMap(); // element of a line -> its text, and the map that has its HTML
const MAX_KEPT = 200;
export const MAX_WRITTEN = 20_000; // characters of a note or a rationale, as `records.Text` on the server
// the signs that formatting would change; a text without them stays one piece, as it was written
const MARKED = /[*_`#|~$\\<>]|\]\(|^\s*(?:[-+]|\d+[.)])\s|^(?: {4}|\t)\s*\S/m;
const MOST_TEXTS = 64;
const MOST_PREVIEWED = 600; // UTF-16 units that the server reads
const MOST_CHARACTERS = 200_000; // of one text, or of several together; a longer one stays as it was written
const drawable = (text) => text.length <= MOST_CHARACTERS && MARKED.test(text);
let formatted = recall("formatted", true);
const batches = new Map(); // map -> its request that is being filled
let missed = false; // reported once, and not for each text while there is no network

/** The UTF-16 place in `text` of a place that is counted in code points. */
function unitsOf(text, place) {
  if (!/[\ud800-\udfff]/.test(text)) return place;
  let at = 0;
  for (let i = 0; i < place && at < text.length; i++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}

/** The characters of `text` from `start` to `end`, counted in code points. */
export const cut = (text, start, end) => text.slice(unitsOf(text, start), unitsOf(text, end));

/** The reason for which a text cannot be submitted; "" if it has at most `most` characters. */
export const tooLong = (text, most = MAX_WRITTEN) => longer(text, most);

export const isFormatted = () => formatted;

export function setFormatted(on) {
  formatted = on;
  remember("formatted", on);
  document.dispatchEvent(new CustomEvent("work:formatted"));
  for (const panel of panels) panel.draw();
  for (const element of document.querySelectorAll("[data-line]")) drawLine(element);
}

/** Loads the formatted view of texts, and of texts within lines, before they are shown, if that view is on. */
export function warm(texts, within = []) {
  if (!formatted) return;
  for (const [kept, wanted] of [[pages, texts], [lines, within]])
    for (const text of wanted) if (drawable(text)) htmlOf(text, kept).catch(() => {});
  if (within.some((text) => /\$|\\[([]/.test(text))) fetchMath(); // so that a line has its formulas when it first appears
}

function htmlOf(text, kept = pages) {
  if (!kept.has(text)) {
    if (kept.size > MAX_KEPT) kept.clear();
    kept.set(text, asked(text, kept));
    kept.get(text).catch(() => kept.delete(text));
  }
  return kept.get(text);
}

/** Shows the beginning of `text`, for lists with one line for each text. */
export const preview = (element, text) => line(element, text.slice(0, MOST_PREVIEWED), previews);

/** Shows a short text, such as a criterion, formatted in `element`, which keeps its words until the formatted view is there. */
export function line(element, text, kept = lines) {
  shown.set(element, { text, kept });
  element.dataset.line = "";
  element.dir = "auto";
  element.textContent = text;
  drawLine(element);
  return element;
}

/** Shows a text of several lines in the same way, with its paragraphs, lists and code. */
export function block(element, text) {
  element.classList.add("prose");
  return line(element, text, pages);
}

/** Makes the formatted view of these texts, so that `drawBlock` has it at once. A text without it is shown as it was written. */
export const fetchBlocks = (texts) => Promise.allSettled(texts.filter(drawable).map((text) => htmlOf(text)));

/** Shows a text formatted in `element`. The choice on the workbench does not count. */
export async function drawBlock(element, text) {
  element.textContent = text;
  if (!drawable(text)) return;
  try {
    const html = await htmlOf(text);
    element.classList.add("prose");
    element.innerHTML = html; // through the server's allow-list
    renderMath(element);
  } catch {
    element.textContent = text;
  }
}

async function drawLine(element) {
  const { text, kept } = shown.get(element);
  if (kept === pages) element.classList.add("verbatim");
  if (!formatted || !drawable(text)) {
    element.textContent = text;
    return;
  }
  try {
    const html = await htmlOf(text, kept);
    if (!formatted || shown.get(element).text !== text) return;
    if (kept === pages) element.classList.remove("verbatim");
    element.innerHTML = html; // through the server's allow-list
    renderMath(element);
  } catch {
    element.textContent = text; // the text as it was written can be read, too
  }
}

/** Texts that are requested in the same moment are sent together, as many as the server takes at once. */
async function asked(text, kept) {
  const open = batches.get(kept);
  if (!open || open.texts.length === MOST_TEXTS || open.size + text.length > MOST_CHARACTERS) batches.set(kept, opened(kept));
  const mine = batches.get(kept);
  mine.size += text.length;
  const place = mine.texts.push(text) - 1;
  return (await mine.answer).html[place];
}

function opened(kept) {
  const mine = { texts: [], size: 0 };
  mine.answer = Promise.resolve().then(() => {
    if (batches.get(kept) === mine) batches.delete(kept);
    return json("/api/v1/render", { body: { texts: mine.texts, inline: kept === lines, preview: kept === previews } });
  });
  return mine;
}

export class TextPanel {
  /** `label` is its name for screen readers; `side` a letter, or "" for a text that takes no marks. */
  constructor(text, { label = "", side = "" } = {}) {
    Object.assign(this, { text, side, spans: [], current: -1, pieces: [] });
    this.element = el("div.work-text", { data: { side } });
    if (label) this.element.setAttribute("aria-label", label);
    panels.add(this);
    this.draw();
  }

  draw() {
    if (formatted && drawable(this.text)) this.drawFormatted();
    else this.drawPlain();
  }

  drawPlain() {
    this.element.className = "work-text prose verbatim";
    this.element.textContent = this.text;
    this.pieces = [{ node: this.element.firstChild, offset: 0, length: this.text.length, at: 0 }].filter(({ node }) => node);
    paintSpans();
  }

  async drawFormatted() {
    if (!this.pieces.length) this.drawPlain(); // something to read until the formatted view is there
    try {
      const html = await htmlOf(this.text);
      if (!formatted || !panels.has(this)) return;
      this.element.className = "work-text prose";
      this.element.innerHTML = html; // through the server's allow-list
      this.pieces = align(this.element, this.text);
      renderMath(this.element);
      paintSpans();
      missed = false;
    } catch (error) {
      if (!missed) toast(`Shown as written; the formatted view is not there: ${error.message}`, { tone: "warn" });
      missed = true;
    }
  }

  /** [{start, end}] in code points; `current` is emphasised. */
  mark(spans, current = -1) {
    Object.assign(this, { spans, current });
    paintSpans();
  }

  /** The selection in this text: {start, end, quote}; null if there is none. */
  selection() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    const places = range.intersectsNode(this.element) && toSource(this.pieces, range);
    if (!places) return null;
    const quote = this.text.slice(...places).trim();
    if (!quote) return null;
    const from = this.text.indexOf(quote, places[0]);
    return this.span(from, from + quote.length);
  }

  /** [from, to] (UTF-16) in the visible text. A part of a formula becomes the whole formula; null if nothing of it is visible. */
  seen([from, to]) {
    const piece = this.pieces.find(({ at, length }) => at < to && at + length > from);
    if (!piece) return null;
    return piece.offset === null ? [piece.at, piece.at + piece.length] : [from, to];
  }

  /** The stored form of UTF-16 places. */
  span(from, to) {
    const start = points(this.text.slice(0, from));
    return { start, end: start + points(this.text.slice(from, to)), quote: this.text.slice(from, to) };
  }

  rangeOf({ start, end }) {
    return toRange(this.pieces, unitsOf(this.text, start), unitsOf(this.text, end));
  }

  reveal(span) {
    const range = this.rangeOf(span);
    const place = range?.startContainer;
    (place?.nodeType === Node.TEXT_NODE ? place.parentElement : place)?.scrollIntoView({ block: "nearest" });
    const box = range?.getBoundingClientRect();
    const scroller = this.element.closest(".work-scroll");
    if (!box || !scroller) return;
    const frame = scroller.getBoundingClientRect();
    if (box.top < frame.top || box.bottom > frame.bottom) scroller.scrollTop += box.top - frame.top - frame.height / 3;
  }

  destroy() {
    panels.delete(this);
    paintSpans();
  }
}

/** The CSS highlights of all marks: the text itself stays one piece, so that places stay exact. */
function paintSpans() {
  if (!globalThis.Highlight || !CSS.highlights) return;
  const [quiet, strong] = [new Highlight(), new Highlight()];
  for (const panel of panels)
    panel.spans.forEach((span, index) => {
      const range = panel.rangeOf(span);
      if (range) (index === panel.current ? strong : quiet).add(range);
    });
  CSS.highlights.set("work-span", quiet);
  CSS.highlights.set("work-span-current", strong);
}
