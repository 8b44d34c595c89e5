// Two metrics of evaluations against each other: a point for each evaluation, joined in their order. The arrow keys move along the points,
// which are also in a table.
import { Chart, comfortable } from "./chart.js";
import { csv } from "./csv.js";
import { download, exact, make, makeSvg, number } from "./format.js";

const HEIGHT = 184;
const MARGIN = { left: 52, right: 20, top: 12, bottom: 36 };
const TICKS = 4;

/** [{step, x, y, xs, ys}] for the steps with both values; `xs` and `ys` are [lower, upper end], or null. */
export function pointsOf(x, y, ends = { x: [], y: [] }) {
  if (!x?.length || !y?.length) return [];
  const at = (curve, step) => curve?.values[curve.steps.indexOf(step)];
  const interval = (curves, step) => {
    const values = curves.map((curve) => at(curve, step));
    return values.length === 2 && values.every((value) => value !== undefined) ? values : null;
  };
  return x.steps.flatMap((step, i) => {
    const other = at(y, step);
    return other === undefined ? [] : [{ step, x: x.values[i], y: other, xs: interval(ends.x, step), ys: interval(ends.y, step) }];
  });
}

/** `x` and `y` are {title, percent}; `points()` gives what `pointsOf` does. */
export class Trace extends Chart {
  constructor(board, { x, y, points, ...rest }) {
    super(board, { ...rest, id: "" }); // its vertical axis does not show a metric over steps
    Object.assign(this, { x, y, points, at: null });
    this.body.tabIndex = 0;
    this.body.classList.add("trace");
    this.body.addEventListener("keydown", (event) => this.walk(event));
    this.body.addEventListener("blur", () => this.choose(null));
    this.legend.append(make("span", "", "Hollow: the first evaluation. Filled: the newest. Lines across: its 95% intervals."));
    this.foot.setAttribute("aria-live", "polite");
    this.table = make("details", "chart-all chart-foot", make("summary", "tiny", "In numbers"));
    this.table.hidden = true;
    this.element.append(this.table);
  }

  downloads() {
    return [["Data as CSV", () => this.csv()]];
  }

  fit() {
    if (this.shown) this.paint();
  }

  draw() {
    const zoom = this.board.zoom;
    const all = this.points().filter(({ step }) => !zoom || this.board.axis !== "step" || (step >= zoom.min && step <= zoom.max));
    if (!all.length) return;
    this.shown = all;
    this.at = this.at === null ? null : Math.min(this.at, all.length - 1);
    this.blank.remove();
    this.paint();
    this.tabulate();
    const last = all.at(-1);
    const words = `${this.title}. ${all.length} evaluations; the newest, at step ${last.step}: ${this.words(last)}. Arrow keys move along them.`;
    this.body.setAttribute("aria-label", words);
  }

  words({ x, y }) {
    return `${this.x.title} ${number(x, this.x.percent)}, ${this.y.title} ${number(y, this.y.percent)}`;
  }

  paint() {
    const width = this.body.clientWidth || 300;
    const scale = (name, from, to) => {
      const values = this.shown.flatMap((point) => [point[name], ...(point === this.shown.at(-1) ? point[`${name}s`] ?? [] : [])]);
      const [low, high] = comfortable(Math.min(...values), Math.max(...values));
      return Object.assign((value) => from + ((value - low) / (high - low)) * (to - from), { low, high });
    };
    const x = scale("x", MARGIN.left, width - MARGIN.right);
    const y = scale("y", HEIGHT - MARGIN.bottom, MARGIN.top);
    const picture = makeSvg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" });
    picture.append(...this.axes(x, y, width), makeSvg("polyline", { class: "trace-line", points: this.shown.map((p) => `${x(p.x)},${y(p.y)}`).join(" ") }));
    const last = this.shown.at(-1);
    if (last.xs) picture.append(makeSvg("line", { class: "trace-interval", x1: x(last.xs[0]), x2: x(last.xs[1]), y1: y(last.y), y2: y(last.y) }));
    if (last.ys) picture.append(makeSvg("line", { class: "trace-interval", x1: x(last.x), x2: x(last.x), y1: y(last.ys[0]), y2: y(last.ys[1]) }));
    picture.append(...this.shown.map((point, i) => this.mark(point, i, x, y)));
    this.body.replaceChildren(picture);
    this.now.textContent = "";
  }

  axes(x, y, width) {
    const ticks = (scale) => Array.from({ length: TICKS + 1 }, (_, i) => scale.low + (i / TICKS) * (scale.high - scale.low));
    const label = (text, place) => Object.assign(makeSvg("text", place), { textContent: text });
    return [
      ...ticks(y).map((value) => makeSvg("line", { class: "trace-rule", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) })),
      ...ticks(y).map((value) => label(number(value, this.y.percent), { x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" })),
      ...ticks(x).map((value) => label(number(value, this.x.percent), { x: x(value), y: HEIGHT - MARGIN.bottom + 16, "text-anchor": "middle" })),
      label(`${this.x.title} →`, { x: width - MARGIN.right, y: HEIGHT - 4, "text-anchor": "end", class: "trace-name" }),
      label(`↑ ${this.y.title}`, { x: MARGIN.left + 4, y: MARGIN.top + 2, class: "trace-name" }),
    ];
  }

  mark(point, i, x, y) {
    const place = i === this.shown.length - 1 ? "last" : i === 0 ? "first" : "between";
    const circle = makeSvg("circle", { class: `trace-point is-${place}${i === this.at ? " is-chosen" : ""}`, cx: x(point.x), cy: y(point.y), r: place === "between" ? 3 : 5 });
    circle.addEventListener("pointerenter", () => this.choose(i));
    circle.addEventListener("pointerleave", () => this.choose(null));
    return circle;
  }

  /** Shows the evaluation under the pointer, or the one that the arrow keys have reached. */
  choose(i) {
    this.at = i;
    const point = i === null ? null : this.shown[i];
    this.foot.textContent = point ? `Step ${point.step}: ${this.words(point)}` : "";
    this.body.querySelectorAll(".trace-point").forEach((circle, place) => circle.classList.toggle("is-chosen", place === i));
  }

  walk(event) {
    const last = (this.shown?.length ?? 0) - 1;
    const at = this.at ?? last;
    const to = { ArrowRight: this.at === null ? 0 : at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(last, to)));
  }

  tabulate() {
    const cell = (value, percent, ends) => make("td", "num", number(value, percent) + (ends ? ` (${number(ends[0], percent)} to ${number(ends[1], percent)})` : ""));
    const head = (text, scope) => Object.assign(make("th", "", text), { scope });
    const rows = this.shown.map((p) => make("tr", "", head(String(p.step), "row"), cell(p.x, this.x.percent, p.xs), cell(p.y, this.y.percent, p.ys)));
    const titles = make("tr", "", head("Step", "col"), head(this.x.title, "col"), head(this.y.title, "col"));
    const table = make("table", "table", make("thead", "", titles), make("tbody", "", ...rows));
    this.table.querySelector("table")?.remove();
    this.table.append(table);
    this.table.hidden = false;
  }

  csv() {
    const rows = (this.shown ?? []).map((p) => [p.step, exact(p.x), exact(p.y)]);
    download(`${this.file}.csv`, csv([["step", this.x.title, this.y.title], ...rows]), "text/csv");
  }
}
