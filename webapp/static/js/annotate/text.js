// A text as it was written, to be read, selected and marked to the character. Places count code points of the text, as the
// server does. The formatted view is made by the server; marks are exact in the plain one.
import { json } from "../http.js";
import { toast } from "../toast.js";
import { el, recall, remember } from "./dom.js";
import { renderMath } from "../math.js";

const panels = new Set();
const pages = new Map(); // text -> promise of its HTML
const MAX_KEPT = 200;
let formatted = recall("formatted", false);
let batch = null;

const points = (text) => (/[\ud800-\udfff]/.test(text) ? [...text].length : text.length);

/** UTF-16 place in `text` of a place counted in code points. */
function unitsOf(text, place) {
  if (!/[\ud800-\udfff]/.test(text)) return place;
  let at = 0;
  for (let i = 0; i < place && at < text.length; i++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}

/** The characters of `text` from `start` to `end`, counted in code points. */
export const cut = (text, start, end) => text.slice(unitsOf(text, start), unitsOf(text, end));

export const isFormatted = () => formatted;

export function setFormatted(on) {
  formatted = on;
  remember("formatted", on);
  document.dispatchEvent(new CustomEvent("work:formatted"));
  for (const panel of panels) panel.draw();
}

/** Has texts ready before they are shown, when the formatted view is on. */
export function warm(texts) {
  if (formatted) for (const text of texts) htmlOf(text).catch(() => {});
}

function htmlOf(text) {
  if (!pages.has(text)) {
    if (pages.size > MAX_KEPT) pages.clear();
    pages.set(text, asked(text));
    pages.get(text).catch(() => pages.delete(text));
  }
  return pages.get(text);
}

/** Texts asked for in the same moment travel together. */
async function asked(text) {
  batch ??= { texts: [], answer: Promise.resolve().then(() => {
    const { texts } = batch;
    batch = null;
    return json("/api/v1/render", { body: { texts } });
  }) };
  const mine = batch;
  const place = mine.texts.push(text) - 1;
  return (await mine.answer).html[place];
}

export class TextPanel {
  /** `label` is how a screen reader calls it; `side` a letter, or "" for a text that takes no marks. */
  constructor(text, { label = "", side = "" } = {}) {
    Object.assign(this, { text, side, spans: [], current: -1 });
    this.element = el("div.work-text", { data: { side } });
    if (label) this.element.setAttribute("aria-label", label);
    panels.add(this);
    this.draw();
  }

  draw() {
    if (formatted) this.drawFormatted();
    else this.drawPlain();
  }

  drawPlain() {
    this.plain = true;
    this.element.className = "work-text prose verbatim";
    this.element.textContent = this.text;
    paintSpans();
  }

  async drawFormatted() {
    if (this.plain === undefined) this.drawPlain(); // something to read until it is there
    try {
      const html = await htmlOf(this.text);
      if (!formatted || !panels.has(this)) return;
      this.plain = false;
      this.element.className = "work-text prose";
      this.element.innerHTML = html; // through the server's allow-list
      renderMath(this.element);
      paintSpans();
    } catch (error) {
      toast(`The formatted view is not there: ${error.message}`, { tone: "warn" });
    }
  }

  /** [{start, end}] in code points; `current` is drawn stronger. */
  mark(spans, current = -1) {
    Object.assign(this, { spans, current });
    paintSpans();
  }

  /** What is selected in this text: {start, end, quote}; null for nothing; `{ambiguous}` where the place is not certain. */
  selection() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    if (!range.intersectsNode(this.element)) return null;
    const whole = document.createRange();
    whole.selectNodeContents(this.element);
    const part = range.cloneRange();
    if (part.compareBoundaryPoints(Range.START_TO_START, whole) < 0) part.setStart(whole.startContainer, whole.startOffset);
    if (part.compareBoundaryPoints(Range.END_TO_END, whole) > 0) part.setEnd(whole.endContainer, whole.endOffset);
    return this.plain ? this.placed(part) : this.searched(part.toString().trim());
  }

  placed(range) {
    const before = document.createRange();
    before.selectNodeContents(this.element);
    before.setEnd(range.startContainer, range.startOffset);
    const raw = range.toString();
    const quote = raw.trim();
    if (!quote) return null;
    const at = before.toString().length + raw.indexOf(quote);
    return this.span(at, at + quote.length);
  }

  searched(quote) {
    if (!quote) return null;
    const at = this.text.indexOf(quote);
    if (at < 0 || this.text.indexOf(quote, at + 1) >= 0) return { ambiguous: true };
    return this.span(at, at + quote.length);
  }

  /** From UTF-16 places to what is stored. */
  span(from, to) {
    const start = points(this.text.slice(0, from));
    return { start, end: start + points(this.text.slice(from, to)), quote: this.text.slice(from, to) };
  }

  rangeOf({ start, end }) {
    const node = this.element.firstChild;
    if (!this.plain || !node) return null;
    const range = document.createRange();
    range.setStart(node, Math.min(unitsOf(this.text, start), node.length));
    range.setEnd(node, Math.min(unitsOf(this.text, end), node.length));
    return range;
  }

  reveal(span) {
    const range = this.rangeOf(span);
    range?.startContainer.parentElement.scrollIntoView({ block: "nearest" });
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

/** The CSS highlights of all marks: the text itself stays one piece, so places stay exact. */
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
