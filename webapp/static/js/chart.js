// One chart of fixed height: uPlot in a card with a title, the newest value, help, downloads, and a summary in words for people who
// cannot see it. The charts of a board share cursor, zoom, axis and smoothing.
import { counted, inView, middle, outside } from "./chartscale.js";
import { png, svg } from "./chartpicture.js";
import { RangeForm, limited } from "./chartrange.js";
import { Walk } from "./chartwalk.js";
import { csv } from "./csv.js";
import { icon } from "./icons.js";
import { download, exact, make, number } from "./format.js";
import { align, smooth } from "./series.js";
import uPlot from "../vendor/uplot.js";

const DASH = [5, 4];
const MANY = 100; // on a board with more charts, even the first picture waits until somebody looks
const NEAR = 200; // pixels: a chart that is as far outside the view counts as in it
const FRAME = 30; // milliseconds of drawing after which the browser shows what there is
const MOST_KEYS = 12; // lines in a legend, a tip and the words
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7];
const COUNTS = [...STEPS, ...[2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 2e9, 5e9, 1e10, 2e10, 5e10, 1e11, 1e12]];
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
const SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];

/** Colours in the form of the canvas. They are read again when the theme changes. */
const colours = new Map();
const family = getComputedStyle(document.body).fontFamily;
const probe = make("span", "visually-hidden");
document.body.append(probe);

export function colour(name) {
  if (!colours.has(name)) {
    probe.style.color = `var(${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}

export function faint(name, alpha) {
  const id = `${name} ${alpha}`;
  if (!colours.has(id)) {
    probe.style.color = `color-mix(in oklch, var(${name}) ${alpha * 100}%, transparent)`;
    colours.set(id, getComputedStyle(probe).color);
  }
  return colours.get(id);
}

/** The colour as #rrggbb, which programs know that do not know oklch. */
function ink(name) {
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  pen.fillStyle = colour(name);
  pen.fillRect(0, 0, 1, 1);
  return `#${[...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** Charts that move together. Redraws happen in one animation frame, and only for charts on the screen. */
export class Board {
  constructor({ axis = "step", smoothing = 0, log = false, clip = false, zoom = null, origin = 0, onzoom = null, backdrop = null, onseen = null, name = "board" } = {}) {
    Object.assign(this, { axis, smoothing, log, clip, zoom, origin, onzoom, backdrop, onseen });
    this.limits = new Map(); // id of a chart -> [lowest, highest] of its vertical axis, null where it is automatic; it goes before the chart's own
    this.marks = null; // what happened at which step: `draw()` above the charts, `tick(u)` on each
    this.measure = null; // { name, at(step) } for an axis that is neither step nor time, once it is known
    this.charts = new Set();
    this.dirty = new Set();
    this.frame = 0;
    this.sync = uPlot.sync(name);
    this.seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        entry.target.chart.visible = entry.isIntersecting;
        if (entry.isIntersecting) this.touch(entry.target.chart);
      }
      this.onseen?.();
    }, { rootMargin: `${NEAR}px` });
    this.sized = new ResizeObserver((entries) => entries.forEach(({ target, contentRect }) => target.chart.fit(contentRect)));
    const repaint = () => {
      colours.clear();
      for (const chart of this.charts) chart.plot?.redraw(false);
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    new MutationObserver(repaint).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  add(chart) {
    this.charts.add(chart);
    this.seen.observe(chart.element);
    this.sized.observe(chart.body);
    return chart;
  }

  /** The vertical range of a chart in this look at the page; null: its own. */
  limit(id, ends) {
    if (ends) this.limits.set(id, ends);
    else this.limits.delete(id);
    for (const chart of this.charts) if (chart.id === id) this.touch(chart);
    this.onzoom?.(this.zoom);
  }

  /** The charts that are in view, without waiting for the browser to say so. */
  look() {
    for (const chart of this.charts) {
      const { top, bottom, width } = chart.element.getBoundingClientRect();
      chart.visible = width > 0 && bottom >= -NEAR && top <= innerHeight + NEAR;
    }
  }

  /** The place of a step; null while that is not known. */
  placing() {
    if (this.axis === "step" || this.axis === "time") return this.axis;
    return this.measure?.name === this.axis ? this.measure.at : null;
  }

  remove(chart) {
    this.charts.delete(chart);
    this.dirty.delete(chart);
    this.seen.unobserve(chart.element);
    this.sized.unobserve(chart.body);
    chart.plot?.destroy();
    chart.element.remove();
  }

  touch(chart) {
    this.dirty.add(chart);
    this.frame ||= requestAnimationFrame(() => this.paint());
  }

  /** Draws what has changed, and leaves to the next frame what would keep this one waiting. */
  paint() {
    this.frame = 0;
    const late = performance.now() + FRAME;
    for (const each of this.dirty) {
      if (!each.visible && (each.plot || this.charts.size > MANY)) continue; // if there are few charts, the first picture is always drawn
      if (performance.now() > late) {
        this.frame = requestAnimationFrame(() => this.paint());
        return;
      }
      this.dirty.delete(each);
      each.draw();
    }
  }

  set(changes) {
    Object.assign(this, changes);
    for (const chart of this.charts) this.touch(chart);
    this.marks?.draw();
    if ("zoom" in changes) this.onzoom?.(this.zoom);
  }
}

/**
 * `lines()` -> [{ label, curve, colour, dash, around, times }]: the curves to draw, in order. `around` is the band: one curve, drawn
 * `times` its value on either side, or two, the lower and the upper end. If it has `limits`, the vertical axis follows these curves and not
 * the band. A line with `gaps` ends where its curve has null.
 * With an `id`, people can set the vertical range of the chart for themselves. `own` is its range for everybody, `keep(ends)` changes that. `across()` names the places of the curves, which are steps unless somebody
 * has put them on another grid.
 * `below(element)` fills the place under the chart. `tools` are more buttons in its head, `actions` more items of its menu: [[label, action]].
 */
export class Chart {
  constructor(board, { id = "", title, unit = "", help = "", percent = false, dots = false, lines, file, wait, below, own = null, keep = null, across = () => "step", tools = [], actions = [] }) {
    Object.assign(this, { board, id, title, unit, help, percent, dots, lines, below, own, keep, across, actions, file: file ?? title });
    this.rangeForm = null; // until somebody sets the range: a page may have hundreds of charts
    this.walker = null; // once there is a plot
    this.visible = false;
    this.size = null; // until it is known
    this.plot = null;
    this.told = 0;
    this.element = make("article", "chart card");
    this.element.chart = this;
    this.now = make("span", "chart-now num");
    this.body = make("div", "chart-body");
    this.body.chart = this;
    this.legend = make("div", "chart-legend tiny");
    this.foot = make("div", "chart-foot tiny num");
    this.lacking = make("p", "chart-lacking tiny num");
    this.tip = make("div", "chart-tip tiny num");
    this.tip.hidden = true;
    this.blank = make("p", "chart-blank small muted", wait ?? "No data yet: the first metrics usually arrive within a minute.");
    this.body.append(this.blank);
    this.body.setAttribute("role", "img");
    this.body.setAttribute("aria-label", `${title}: no data yet`);
    const heading = make("h3", "chart-title", title);
    if (unit) heading.append(make("span", "unit", ` ${unit}`));
    this.element.append(make("header", "chart-head", heading, this.aid(), this.now, ...tools, this.enlarger(), this.menu()), make("div", "chart-stage", this.body, this.lacking), this.legend, this.foot, this.tip);
  }

  aid() {
    const button = make("button", "chart-help");
    button.type = "button";
    button.setAttribute("aria-label", `About ${this.title}: ${this.help}`);
    button.append(icon("info"), make("span", "chart-help-text", this.help));
    button.hidden = !this.help;
    return button;
  }

  /** A button that lets the chart fill the window, in front of the page; Escape, a click beside it or the button closes it. */
  enlarger() {
    const button = make("button", "chart-enlarge", icon("maximize-2"));
    button.type = "button";
    button.setAttribute("aria-label", `Enlarge ${this.title}`);
    button.setAttribute("aria-expanded", "false");
    button.hidden = !("popover" in this.element);
    this.element.addEventListener("toggle", (event) => {
      if (event.target !== this.element) return; // the menu is a details, which tells the same
      const open = event.newState === "open";
      button.setAttribute("aria-expanded", String(open));
      if (open) return;
      this.element.popover = null; // back into its place in the page
      button.focus({ preventScroll: true });
    });
    button.addEventListener("click", () => {
      if (this.element.popover) return this.element.hidePopover();
      this.element.popover = "auto";
      this.element.showPopover();
      button.focus({ preventScroll: true });
    });
    return button;
  }

  menu() {
    const changes = this.actions.length > 0 || Boolean(this.id);
    const menu = make("details", "menu");
    menu.dataset.menu = "";
    const summary = make("summary", "btn ghost small icon-only", icon(changes ? "ellipsis" : "download"));
    summary.setAttribute("aria-label", changes ? `Download or change ${this.title}` : `Download ${this.title}`);
    const items = make("div", "menu-list");
    const range = this.id ? [["Set the vertical range", () => this.ranger().open()]] : [];
    for (const [label, action] of [...this.downloads(), ...range, ...this.actions]) {
      const item = make("button", "menu-item", label);
      item.type = "button";
      item.addEventListener("click", action);
      items.append(item);
    }
    menu.append(summary, items);
    return menu;
  }

  /** The ends of the vertical axis that somebody has set, for this look or for everybody; null: automatic. */
  get set() {
    const ends = this.board.limits.get(this.id) ?? this.own;
    return ends?.some((end) => end !== null) ? ends : null;
  }

  ranger() {
    if (!this.rangeForm) {
      this.rangeForm = new RangeForm(this);
      this.element.querySelector(".chart-head").after(this.rangeForm.element);
    }
    return this.rangeForm;
  }

  downloads() {
    return [["Data as CSV", () => this.csv()], ["Picture as PNG", () => this.png()], ["Picture as SVG", () => this.svg()]];
  }

  /** Takes the size of its body, which the browser tells. To read it while charts are built makes the browser lay out the page for each. */
  fit({ width, height } = { width: this.body.clientWidth, height: this.body.clientHeight }) {
    this.size = { width: Math.round(width) || 300, height: Math.round(height) || 180 };
    if (this.plot && width && (this.size.width !== this.plot.width || this.size.height !== this.plot.height)) this.plot.setSize(this.size);
  }

  draw() {
    const lines = this.lines().filter((line) => line.curve?.length);
    const placing = this.board.placing();
    if (!lines.length || !placing) return;
    this.shown = lines;
    const spreads = lines.filter((line) => banded(line));
    const weight = this.dots ? 0 : this.board.smoothing; // a few evaluations are not smoothed
    const smoothed = weight > 0;
    const [xs, ...ys] = align([...lines.map((l) => l.curve), ...spreads.flatMap((l) => [...l.around, ...(l.limits ?? [])])], placing, this.board.origin, lines.some((line) => line.gaps) ? undefined : null);
    const mains = ys.slice(0, lines.length);
    const rest = ys.slice(lines.length);
    const limits = [];
    const bands = spreads.flatMap((line) => {
      const middle = mains[lines.indexOf(line)];
      const [first, second] = rest.splice(0, line.around.length);
      limits.push(...rest.splice(0, line.limits?.length ?? 0));
      if (second) return [second, first];
      return [1, -1].map((sign) => middle.map((m, j) => (m === null || first[j] === null ? null : m + sign * (line.times ?? 1) * first[j])));
    });
    const raws = smoothed ? mains : [];
    const data = [xs, ...mains.map((m) => smooth(m, weight)), ...raws, ...bands];
    const zoom = this.board.zoom;
    const ends = spreads.flatMap((line, i) => (line.limits ? [] : bands.slice(2 * i, 2 * i + 2)));
    this.range = this.rangeOf(inView(xs, [...mains, ...ends, ...limits], zoom), spreads.some((line) => line.limits));
    this.out = outside(xs, mains, zoom, this.range, this.board.log);
    this.lacking.textContent = counted(this.out);
    if (this.board.log) onlyPositive(data);
    const shape = `${lines.map((l) => l.label + l.colour).join()}|${smoothed}|${bands.length}|${this.board.log}`;
    this.smoothed = smoothed;
    if (shape !== this.shape) this.build(lines, smoothed, spreads, shape);
    this.data = data;
    this.plot.batch(() => {
      this.plot.setData(data, false);
      const low = xs[0];
      const high = xs.length > 1 ? xs.at(-1) : low + 1;
      this.plot.setScale("x", zoom ?? { min: low, max: high });
    });
    this.below?.(this.foot);
    if (this.rangeForm || this.board.limits.has(this.id)) this.ranger().show();
    this.walker.follow();
    this.tell();
  }

  /** The vertical range if outliers or bands (`narrow`) are left out of it or somebody has set it; null: it holds all that is drawn. */
  rangeOf(values, narrow) {
    const { clip, log } = this.board;
    const ends = clip && middle(values, log);
    const range = ends ? (log ? ends : comfortable(...ends)) : null;
    const set = this.set;
    if (!set && (range || !narrow)) return range;
    const fitting = log ? values.filter((value) => value > 0) : values;
    const [low, high] = [Math.min, Math.max].map((most) => (fitting.length ? fitting.reduce((one, other) => most(one, other)) : null));
    const all = range ?? whole(low, high, log);
    return set ? limited(all, set, log) : all;
  }

  /** A mark at the edge for each point that lies beyond it. */
  beyond(u) {
    const [pen, size, { left, top, width, height }] = [u.ctx, 4 * devicePixelRatio, u.bbox];
    pen.save();
    for (const spot of this.out.spots) {
      const x = Math.min(Math.max(u.valToPos(spot.x, "x", true), left), left + width);
      const [tip, base] = spot.above ? [top, top + size * 1.5] : [top + height, top + height - size * 1.5];
      pen.fillStyle = colour(this.shown[spot.line].colour);
      pen.beginPath();
      pen.moveTo(x, tip);
      pen.lineTo(x - size, base);
      pen.lineTo(x + size, base);
      pen.fill();
    }
    pen.restore();
  }

  build(lines, smoothed, spreads, shape) {
    this.plot?.destroy();
    this.shape = shape;
    this.blank.remove();
    const n = lines.length;
    const line = (l) => ({
      label: l.label, stroke: () => colour(l.colour), width: 1.75, dash: l.dash ? DASH : undefined, spanGaps: !l.gaps,
      points: this.dots ? { show: true, size: 6, fill: () => colour(l.colour) } : { show: (u) => u.data[0].length < 3, size: 5 },
    });
    const hidden = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
    const raw = (l) => ({ stroke: () => faint(l.colour, 0.3), width: 1, spanGaps: !l.gaps, points: { show: false } });
    const first = 1 + n + (smoothed ? n : 0);
    if (!this.size) this.fit();
    const options = {
      ...this.size,
      legend: { show: false },
      padding: [8, 16, 0, 0],
      scales: { x: { time: false }, y: { distr: this.board.log ? 3 : 1, range: (u, low, high) => this.range ?? whole(low, high, this.board.log) } },
      series: [{}, ...lines.map(line), ...(smoothed ? lines.map(raw) : []), ...spreads.flatMap(() => [hidden, hidden])],
      bands: spreads.map((l, i) => ({ series: [first + 2 * i, first + 2 * i + 1], fill: () => faint(l.colour, 0.14) })),
      axes: [this.axis(false), this.axis(true)],
      cursor: {
        sync: { key: this.board.sync.key, scales: ["x", null] },
        drag: { x: true, y: false, setScale: false },
        points: { size: 6, show: (u, i) => (i <= n ? undefined : false) },
        bind: { dblclick: () => () => { this.board.set({ zoom: null }); return null; } },
      },
      hooks: { drawClear: [(u) => this.board.backdrop?.draw(u, this.board)], draw: [(u) => this.beyond(u), (u) => this.board.marks?.tick(u)], setSelect: [(u) => this.select(u)], setCursor: [(u) => this.hover(u)] },
    };
    this.plot = new uPlot(options, this.data ?? [[], ...options.series.slice(1).map(() => [])], this.body);
    if (!this.walker) {
      this.walker = new Walk(this);
      this.body.after(this.walker.element); // the body is a picture, which has no parts for a screen reader
    }
    this.key(lines);
  }

  axis(vertical) {
    const look = { font: `11px ${family}`, stroke: () => colour("--text-3"), ticks: { show: false }, grid: { stroke: () => colour("--line-soft"), width: 1 } };
    if (vertical && this.board.log) return { ...look, size: 48, gap: 4, values: (u, ticks) => ticks.map((tick) => (tick === null ? "" : number(tick, this.percent))) };
    if (vertical) return { ...look, size: 48, gap: 4, space: 32, values: (u, ticks) => labels(ticks, this.percent) };
    const words = (seconds) => (seconds >= 5400 ? `${+(seconds / 3600).toFixed(1)} h` : seconds >= 90 ? `${+(seconds / 60).toFixed(1)} m` : `${Math.round(seconds)} s`);
    const count = (n) => (Number.isInteger(n) ? (n >= 1e5 ? SHORT.format(n) : n.toLocaleString("en")) : "");
    return { ...look, size: 26, gap: 4, space: 56, grid: { show: false }, incrs: () => (this.board.axis === "time" ? SPANS : this.board.axis === "step" ? STEPS : COUNTS),
      values: (u, ticks) => ticks.map(this.board.axis === "time" ? words : count) };
  }

  key(lines) {
    this.legend.replaceChildren();
    if (lines.length < 2 || lines.length > MOST_KEYS) return;
    for (const line of lines) {
      const swatch = make("span", `swatch${line.dash ? " is-dashed" : ""}`);
      swatch.style.setProperty("--series", `var(${line.colour})`);
      this.legend.append(make("span", "chart-key", swatch, Object.assign(make("span", "", line.label), { title: line.label })));
    }
  }

  select(u) {
    if (u.select.width < 8) return;
    const min = u.posToVal(u.select.left, "x");
    const max = u.posToVal(u.select.left + u.select.width, "x");
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (u.cursor.event) this.board.set({ zoom: { min, max } });
  }

  /** Values under the cursor: in the head of every chart, and with all digits beside the pointer of this one. */
  hover(u) {
    const at = u.cursor.idx;
    if (at === null || at === undefined || !this.shown) {
      this.tip.hidden = true;
      this.newest();
      return;
    }
    const first = this.data[1][at];
    this.now.textContent = this.shown.length === 1 ? number(first, this.percent) : "";
    const mine = u.over.matches(":hover") || this.walker.active;
    this.tip.hidden = !mine;
    if (!mine) return;
    const x = this.data[0][at];
    const valueOf = (i) => this.valueAt(i, at);
    const rows = this.nearest(u, valueOf).map((i) => {
      const line = this.shown[i];
      const swatch = make("span", "swatch");
      swatch.style.setProperty("--series", `var(${line.colour})`);
      const value = valueOf(i);
      return make("div", "chart-tip-row", swatch, make("span", "", line.label), make("strong", "", exact(value ?? null) + aroundAt(line, x, this.board)));
    });
    const rest = this.shown.length - rows.length;
    this.tip.replaceChildren(make("div", "muted", this.placeOf(x)), ...rows, ...(rest ? [make("div", "muted", `and ${rest} others`)] : []));
    const left = u.over.offsetLeft + u.cursor.left;
    const right = left > this.body.clientWidth / 2;
    this.tip.style.left = right ? "auto" : `${left + 16}px`;
    this.tip.style.right = right ? `${this.body.clientWidth - left + 12}px` : "auto";
  }

  placeOf(x) {
    return this.board.axis === "time" ? `${Math.round(x)} s after the start` : placed(this.board.axis, x);
  }

  /** The value as it was measured, also if the line is smoothed. */
  valueAt(line, at) {
    return this.data[1 + (this.smoothed ? this.shown.length : 0) + line][at];
  }

  /** The values at a place, for people who cannot see them. */
  wordsAt(at) {
    const parts = this.shown.slice(0, MOST_KEYS).map((line, i) => `${line.label} ${exact(this.valueAt(i, at) ?? null)}`);
    return `${this.placeOf(this.data[0][at])}: ${this.shown.length === 1 ? exact(this.valueAt(0, at) ?? null) : parts.join(", ")}`;
  }

  /** Indices of the lines in a tip: all of them, or those nearest to the pointer if there are many. */
  nearest(u, valueOf) {
    const all = this.shown.map((_, i) => i);
    if (all.length <= MOST_KEYS) return all;
    const y = u.posToVal(u.cursor.top, "y");
    const far = (i) => Math.abs((valueOf(i) ?? Infinity) - y);
    return all.sort((one, other) => far(one) - far(other)).slice(0, MOST_KEYS);
  }

  newest() {
    this.now.textContent = this.shown?.length === 1 ? number(this.shown[0].curve.values.at(-1), this.percent) : "";
  }

  /** Writes the summary in words, at most every five seconds, so that screen readers do not read all the time. */
  tell() {
    if (!this.plot.cursor || this.plot.cursor.left < 0) this.newest();
    if (Date.now() - this.told < 5000) return;
    this.told = Date.now();
    const parts = this.shown.slice(0, MOST_KEYS).map((line) => {
      const s = line.curve.summary();
      return `${line.label}: first ${number(s.first)}, last ${number(s.last)} at ${placed(this.across(), s.step)}, lowest ${number(s.low)}, highest ${number(s.high)}`;
    });
    this.body.setAttribute("aria-label", `${this.title}${this.unit ? ` in ${this.unit}` : ""}. ${parts.join(". ")}`);
  }

  csv() {
    const lines = (this.shown ?? []).flatMap((line) => [line, ...(banded(line) ? line.around.map((curve, i) => ({ label: `${line.label} ${line.around.length > 1 ? ["lower end", "upper end"][i] : "spread"}`, curve })) : [])]);
    const [steps, ...columns] = align(lines.map((l) => l.curve), "step");
    const rows = steps.map((step, i) => [step, ...columns.map((column) => column[i] ?? "")]);
    download(`${this.file}.csv`, csv([[this.across(), ...lines.map((line) => line.label)], ...rows]), "text/csv");
  }

  /** The whole chart as it is shown, for other programs. */
  picture() {
    if (!this.plot) return null;
    this.plot.setCursor({ left: -10, top: -10 });
    for (const line of this.shown) line.banded = banded(line);
    return svg(this, { x: this.board.axis === "time" ? "seconds after the start" : this.board.axis, y: this.unit }, ink);
  }

  svg() {
    const picture = this.picture();
    if (picture) download(`${this.file}.svg`, picture.markup, "image/svg+xml");
  }

  async png() {
    const picture = this.picture();
    if (picture) download(`${this.file}.png`, await png(picture), "image/png");
  }
}

/** "step 12", or "3,400 tokens". */
function placed(name, x) {
  return name === "step" ? `step ${x}` : `${Math.round(x).toLocaleString("en")} ${name}`;
}

/** A log scale has no place for 0 and below. */
function onlyPositive(data) {
  for (let i = 1; i < data.length; i++) data[i] = data[i].map((value) => (value > 0 || value === undefined ? value : null));
}

function whole(low, high, log) {
  if (!log) return comfortable(low, high);
  return low === null ? [null, null] : uPlot.rangeLog(low, high, 10, false);
}

function banded(line) {
  return Boolean(line.around?.length) && line.around.every((curve) => curve?.length);
}

/** " ± 0.1", or " (0.4 to 0.9)"; empty if the band has no value there. */
function aroundAt(line, x, board) {
  if (!banded(line) || board.axis !== "step") return "";
  const values = line.around.map((curve) => curve.values[curve.steps.indexOf(x)]);
  if (values.includes(undefined)) return "";
  return values.length > 1 ? ` (${number(values[0])} to ${number(values[1])})` : ` ± ${number((line.times ?? 1) * values[0])}`;
}

/** A range with a little space above and below. A flat line gets more, so that rounding noise does not fill the chart. */
export function comfortable(low, high) {
  if (low === null || high === null) return [0, 1];
  const size = Math.max(Math.abs(low), Math.abs(high));
  const air = high - low <= size * 1e-6 ? size * 0.1 || 0.5 : (high - low) * 0.08;
  return [low >= 0 && low - air < 0 ? 0 : low - air, high + air];
}

function labels(ticks, percent) {
  if (percent) return ticks.map((tick) => `${+(tick * 100).toFixed(1)}%`);
  const size = Math.max(...ticks.map(Math.abs));
  if (size >= 10_000) return ticks.map((tick) => `${+(tick / 1000).toFixed(1)}k`);
  if (size !== 0 && size < 0.005) {
    const write = (digits) => ticks.map((tick) => (tick === 0 ? "0" : tick.toExponential(digits)));
    return new Set(write(0)).size === ticks.length ? write(0) : write(1);
  }
  return ticks.map((tick) => String(+tick.toFixed(4)));
}
