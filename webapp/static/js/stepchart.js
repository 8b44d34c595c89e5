// A small curve over steps, with the range of each step, on which one step is chosen: by a click, or by the arrow keys.
import { make, makeSvg } from "./format.js";
import { comfortable } from "./chart.js";

const HEIGHT = 148;
const MARGIN = { left: 48, right: 12, top: 10, bottom: 22 };
const TICKS = 4; // about this many at most

/** `points`: [{step, mean, low, high}], ascending, `low` and `high` null where there is no range. `words(point)` says one. */
export class StepChart {
  constructor({ title, words, format, choose }) {
    Object.assign(this, { title, words, format, choose, points: [], step: null, beside: null });
    this.body = make("div", "step-chart");
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "slider");
    this.body.setAttribute("aria-label", `${title}: step`);
    this.body.addEventListener("keydown", (event) => this.walk(event));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("pointermove", (event) => this.say(this.nearest(event)));
    this.body.addEventListener("pointerleave", () => this.say(this.at(this.step)));
    this.told = make("p", "tiny muted num step-told");
    this.element = make("figure", "", make("figcaption", "label", title), this.body, this.told);
    new ResizeObserver(() => this.paint()).observe(this.body);
  }

  show(points, step, beside) {
    this.points = points.filter(({ mean }) => mean !== null && mean !== undefined);
    Object.assign(this, { step, beside });
    this.element.hidden = !this.points.length;
    if (!this.points.length) return;
    const [first, last] = [this.points[0].step, this.points.at(-1).step];
    const chosen = this.at(step);
    this.body.setAttribute("aria-valuemin", first);
    this.body.setAttribute("aria-valuemax", last);
    this.body.setAttribute("aria-valuenow", step ?? last);
    this.body.setAttribute("aria-valuetext", chosen ? this.words(chosen) : `step ${step}: not measured`);
    this.say(chosen);
    this.paint();
  }

  at(step) {
    return this.points.find((point) => point.step === step);
  }

  say(point) {
    this.told.textContent = point ? this.words(point) : "";
  }

  paint() {
    if (!this.points.length) return;
    const width = this.body.clientWidth || 300;
    const values = this.points.flatMap(({ mean, low, high }) => [mean, low ?? mean, high ?? mean]);
    const [low, high] = comfortable(Math.min(...values), Math.max(...values));
    const [first, last] = [this.points[0].step, this.points.at(-1).step];
    const inner = width - MARGIN.left - MARGIN.right;
    this.x = (step) => MARGIN.left + (last > first ? (step - first) / (last - first) : 0.5) * inner;
    const y = (value) => HEIGHT - MARGIN.bottom - ((value - low) / (high - low)) * (HEIGHT - MARGIN.bottom - MARGIN.top);
    const picture = makeSvg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" });
    picture.append(...this.axes(width, y, low, high, first, last), ...this.range(y));
    for (const [css, step] of [["is-beside", this.beside], ["is-step", this.step]]) {
      if (step !== null) picture.append(makeSvg("line", { class: `step-line ${css}`, x1: this.x(step), x2: this.x(step), y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }));
    }
    const line = this.points.map(({ step, mean }) => `${this.x(step)},${y(mean)}`).join(" ");
    picture.append(makeSvg("polyline", { class: "step-mean", points: line }));
    const dots = this.points.length <= 60 ? this.points : [this.at(this.step)].filter(Boolean);
    picture.append(...dots.map((point) => makeSvg("circle", { class: "step-dot", cx: this.x(point.step), cy: y(point.mean), r: point.step === this.step ? 4 : 2.5 })));
    this.body.replaceChildren(picture);
  }

  range(y) {
    const ranged = this.points.filter((point) => point.low !== null && point.low !== undefined);
    if (ranged.length < 2) return ranged.map((p) => makeSvg("line", { class: "step-bar", x1: this.x(p.step), x2: this.x(p.step), y1: y(p.low), y2: y(p.high) }));
    const edge = [...ranged.map((p) => `${this.x(p.step)},${y(p.high)}`), ...[...ranged].reverse().map((p) => `${this.x(p.step)},${y(p.low)}`)];
    return [makeSvg("polygon", { class: "step-range", points: edge.join(" ") })];
  }

  axes(width, y, low, high, first, last) {
    const label = (text, place) => Object.assign(makeSvg("text", place), { textContent: text });
    const values = ticks(low, high);
    return [
      ...values.map((value) => makeSvg("line", { class: "step-rule", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) })),
      ...values.map((value) => label(this.format(value), { x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" })),
      label(`step ${first}`, { x: MARGIN.left, y: HEIGHT - 4 }),
      ...(last > first ? [label(String(last), { x: width - MARGIN.right, y: HEIGHT - 4, "text-anchor": "end" })] : []),
    ];
  }

  nearest(event) {
    if (!this.points.length) return undefined;
    const at = event.clientX - this.body.getBoundingClientRect().left;
    return this.points.reduce((best, point) => (Math.abs(this.x(point.step) - at) < Math.abs(this.x(best.step) - at) ? point : best));
  }

  /** With Shift, the step on the left. */
  clicked(event) {
    const point = this.nearest(event);
    if (point) this.choose(point.step, event.shiftKey);
  }

  walk(event) {
    const steps = this.points.map(({ step }) => step);
    const at = steps.indexOf(this.step);
    const to = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: steps.length - 1 }[event.key];
    if (to === undefined || !steps.length) return;
    event.preventDefault();
    this.choose(steps[Math.max(0, Math.min(steps.length - 1, to))], event.shiftKey);
  }
}

/** Round numbers from `low` to `high`. */
function ticks(low, high) {
  const size = 10 ** Math.floor(Math.log10((high - low) / TICKS));
  const step = [1, 2, 5, 10].map((times) => times * size).find((each) => (high - low) / each <= TICKS);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(6)));
}
