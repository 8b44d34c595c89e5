// The time of one step, as a line: kinds of work, their phases and each report of progress under one another; below them
// what ran at the same time, in lanes. The arrow keys move between the spans, as the pointer does.
import { json } from "./http.js";
import { make, makeSvg, number } from "./format.js";

/** Kinds of work of a step: the key of its seconds, and words. */
export const WORK = [
  ["perf/rollout_s", "Sampling"],
  ["perf/reward_s", "Rewards"],
  ["perf/learner_s", "Training"],
  ["perf/evaluation_s", "Evaluation"],
  ["perf/saving_s", "Checkpoint"],
  ["perf/other_s", "Other"],
];
const ROW = 22; // pixels of a lane
const GAP = 12; // between what the step did itself and what ran beside it
const LEAST = 2; // pixels of a span
const ROOM = 34; // pixels from which on a span has its name
const AXIS = 20;
const kind = (work) => WORK.findIndex(([key]) => key === `perf/${work}_s`);

/** "Sampling", "sampling", "3 neighbours as one" */
export function named({ work, name, pieces }) {
  const words = name || (WORK[kind(work)]?.[1] ?? work);
  return pieces > 1 ? `${words}, ${number(pieces)} together` : words;
}

/** Each span with its lane: nested ones under the one around them; of those without one, the first lane that is free. Returns the number
 *  of lanes. */
export function laned(spans, nested) {
  const free = []; // by lane, when its last span ends
  for (const span of spans) {
    if (nested) span.lane = span.inside === null ? 0 : spans[span.inside].lane + 1;
    else {
      const lane = free.findIndex((end) => end <= span.start + 1e-9);
      span.lane = lane < 0 ? free.length : lane;
      free[span.lane] = span.start + span.seconds;
    }
  }
  return Math.max(0, ...spans.map(({ lane }) => lane + 1));
}

export class Flame {
  /** `chosen(step)` is called with the step that is shown, or null. */
  constructor(place, api, chosen) {
    Object.assign(this, { place, api, chosen, step: null, asked: 0, at: -1, told: null });
    this.title = make("h3", "flame-title");
    const close = Object.assign(make("button", "btn small ghost push", "Close"), { type: "button" });
    close.addEventListener("click", () => this.hide());
    this.picture = make("div", "flame-picture");
    this.picture.tabIndex = 0;
    this.picture.setAttribute("role", "img");
    this.picture.addEventListener("keydown", (event) => this.walk(event));
    this.foot = make("p", "flame-foot small num");
    this.foot.setAttribute("aria-live", "polite");
    this.table = make("details", "flame-numbers small", make("summary", "", "In numbers"));
    this.place.append(make("div", "row gap-2", this.title, close), this.picture, this.foot, this.table);
    this.place.hidden = true;
    new ResizeObserver(() => this.told && this.paint()).observe(this.picture);
  }

  hide() {
    this.step = null;
    this.place.hidden = true;
    this.chosen(null);
  }

  async show(step) {
    if (this.step === step) return;
    this.step = step;
    this.place.hidden = false;
    this.chosen(step);
    const asked = ++this.asked;
    try {
      const told = await json(`${this.api}/spans?${new URLSearchParams({ step })}`);
      if (asked === this.asked && this.step === step) this.draw(step, told);
    } catch (error) {
      if (asked === this.asked) this.empty(step, `The spans of this step could not be loaded: ${error.message}`);
    }
  }

  empty(step, why) {
    this.told = null;
    this.title.textContent = `Step ${number(step)}`;
    this.picture.replaceChildren(make("p", "muted small", why));
    this.picture.setAttribute("aria-label", why);
    this.foot.textContent = "";
    this.table.hidden = true;
  }

  draw(step, told) {
    if (told.step === null) return this.empty(step, lacking(told));
    this.told = told;
    this.at = -1;
    this.title.textContent = `Step ${number(step)}, ${number(told.seconds)} s`;
    this.all = [...told.spans, ...told.beside];
    const own = laned(told.spans, true);
    this.lanes = own + laned(told.beside, false);
    for (const span of told.beside) Object.assign(span, { lane: span.lane + own, beside: true });
    this.foot.textContent = this.hint();
    this.tabulate();
    this.paint();
  }

  hint() {
    const some = this.all.some(({ pieces }) => pieces > 1) ? " A step has a bounded number of spans: neighbours are together." : "";
    return `Point at a span, or use the arrow keys.${some}`;
  }

  paint() {
    const width = this.picture.clientWidth;
    if (!width) return;
    const height = this.lanes * ROW + (this.told.beside.length ? GAP : 0) + AXIS;
    const x = (seconds) => (seconds / (this.told.seconds || 1)) * width;
    const svg = makeSvg("svg", { width, height, "aria-hidden": "true" });
    this.bars = this.all.map((span, i) => this.bar(span, i, x));
    svg.append(...this.bars, ...ticks(this.told.seconds, width, height, x));
    this.picture.replaceChildren(svg);
    const works = this.told.spans.filter(({ inside }) => inside === null);
    this.picture.setAttribute("aria-label", `The time of step ${number(this.told.step)}: ${works.map((each) => `${named(each)} ${number(each.seconds)} s`).join(", ")}. The arrow keys move between the spans.`);
    this.mark();
  }

  bar(span, i, x) {
    const left = x(span.start);
    const width = Math.max(x(span.seconds) - 1, LEAST);
    const top = span.lane * ROW + (span.beside ? GAP : 0);
    const bar = makeSvg("g", { class: `flame-span is-${kind(span.work) + 1}${span.inside === null && !span.beside ? "" : " is-inner"}` });
    bar.append(makeSvg("rect", { x: left, y: top, width, height: ROW - 2, rx: 2 }));
    if (width >= ROOM) {
      const text = makeSvg("text", { x: left + 5, y: top + 14 });
      text.textContent = clipped(named(span), width - 10);
      bar.append(text);
    }
    bar.addEventListener("pointermove", () => this.choose(i)); // not as it enters: a span may come under a pointer that rests
    return bar;
  }

  choose(i) {
    this.at = i;
    const span = this.all[i];
    const around = span.beside ? " (at the same time)" : "";
    this.foot.textContent = `${named(span)}${around}: ${number(span.seconds)} s, from ${number(span.start)} s on`;
    this.mark();
  }

  mark() {
    this.bars.forEach((bar, i) => bar.classList.toggle("is-chosen", i === this.at));
  }

  walk(event) {
    if (!this.told) return;
    const last = this.all.length - 1;
    const by = { ArrowRight: this.at + 1, ArrowDown: this.at + 1, ArrowLeft: this.at - 1, ArrowUp: this.at - 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") return this.hide();
    if (by === undefined || last < 0) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(last, by)));
    this.bars[this.at].scrollIntoView({ block: "nearest" });
  }

  tabulate() {
    const head = (text) => Object.assign(make("th", "", text), { scope: "col" });
    const rows = this.all.map((span) => make("tr", "", make("td", "", `${" ".repeat(2 * (span.beside ? 0 : span.lane))}${named(span)}`),
      make("td", "", span.beside ? "at the same time" : "in the step"), make("td", "num", number(span.start)), make("td", "num", number(span.seconds))));
    const table = make("table", "table", make("thead", "", make("tr", "", head("Work"), head("Place"), head("Start, s"), head("Duration, s"))), make("tbody", "", ...rows));
    this.table.querySelector(".table-wrap")?.remove();
    this.table.append(make("div", "table-wrap", table));
    this.table.hidden = false;
  }
}

/** The reason for which there is nothing to show of a step. */
function lacking({ first, last }) {
  if (last === null) return "This run has recorded no spans: runs of other programs and of versions before 0.2 have none.";
  return `Nothing is kept of this step. There are spans of steps ${number(first)} to ${number(last)}.`;
}

const clipped = (text, width) => (text.length * 6.2 <= width ? text : `${text.slice(0, Math.max(0, Math.floor(width / 6.2) - 1))}…`);

/** The seconds at the ends and in the middle. */
function ticks(seconds, width, height, x) {
  return [[0, "start"], [seconds / 2, "middle"], [seconds, "end"]].map(([at, anchor]) => {
    const text = makeSvg("text", { class: "flame-tick", x: x(at), y: height - 4, "text-anchor": anchor });
    text.textContent = `${number(at)} s`;
    return text;
  });
}
