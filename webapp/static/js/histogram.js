// Two histograms side by side with one slider over the steps: a metric, raw and masked, with the same edges.
import { make, number } from "./format.js";
import { colour } from "./chart.js";
import { json } from "./http.js";
import { Shares } from "./shares.js";
import uPlot from "../vendor/uplot.js";

const KEPT = 120; // steps in memory for each key; if there are more, every second older one is dropped

export class Histograms {
  constructor(api, title, specs) {
    this.api = api;
    this.specs = specs;
    this.steps = new Map(specs.map((spec) => [spec.key, new Map()]));
    this.at = null; // null: follow the newest step
    this.element = make("article", "chart card histograms");
    this.slider = Object.assign(make("input"), { type: "range", min: 0, max: 0, value: 0 });
    this.slider.setAttribute("aria-label", "Step of the histograms");
    this.label = make("output", "num strong small");
    this.slider.addEventListener("input", () => {
      const all = this.all();
      this.at = Number(this.slider.value) === all.length - 1 ? null : all[this.slider.value];
      this.draw();
    });
    const head = make("header", "chart-head", make("h3", "chart-title", title), make("span", "push"), this.slider, this.label);
    this.row = make("div", "histogram-row");
    this.panes = specs.map((spec, i) => {
      const pane = make("div", "histogram");
      const body = make("div", "histogram-body");
      body.setAttribute("role", "img");
      const caption = make("p", "tiny", make("strong", "", spec.title));
      caption.append(make("span", "muted", ` ${spec.help}`));
      const missing = make("p", "histogram-missing small muted", "Not measured at this step.");
      pane.append(body, missing, caption);
      this.row.append(pane);
      return { spec, body, missing, colour: `--series-${1 + ((2 * i) % 8)}`, plot: null };
    });
    this.blank = make("p", "chart-blank small muted", "No histogram yet: it comes with the first update.");
    this.shares = specs.filter((spec) => spec.over).map((spec) => new Shares(spec));
    this.row.append(...this.shares.map((each) => each.element));
    this.element.append(head, this.blank, this.row);
    this.row.hidden = true;
    const plotted = () => [...this.panes, ...this.shares].filter((pane) => pane.plot);
    new ResizeObserver(() => plotted().forEach((pane) => pane.body.clientWidth && pane.plot.setSize({ width: pane.body.clientWidth, height: 150 }))).observe(this.row);
    const repaint = () => setTimeout(() => plotted().forEach((pane) => pane.plot.redraw(false)));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    new MutationObserver(repaint).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  async load() {
    for (const { key } of this.specs) {
      const found = await json(`${this.api}/histograms?key=${encodeURIComponent(key)}`);
      for (const { step, edges, counts } of found.steps) this.set(key, step, { edges, counts });
    }
    this.draw();
  }

  set(key, step, histogram) {
    const kept = this.steps.get(key);
    if (!kept) return false;
    kept.set(step, histogram);
    if (kept.size > KEPT) [...kept.keys()].sort((a, b) => a - b).forEach((s, i, all) => i % 2 && i < all.length - 10 && kept.delete(s));
    return true;
  }

  apply(step, histograms) {
    const mine = Object.entries(histograms).filter(([key, histogram]) => this.set(key, step, histogram));
    if (mine.length) requestAnimationFrame(() => this.draw());
  }

  all() {
    return [...new Set([...this.steps.values()].flatMap((kept) => [...kept.keys()]))].sort((a, b) => a - b);
  }

  draw() {
    const all = this.all();
    if (!all.length) return;
    this.row.hidden = false;
    this.blank.hidden = true;
    const step = this.at !== null && all.includes(this.at) ? this.at : all.at(-1);
    this.slider.max = all.length - 1;
    this.slider.value = all.indexOf(step);
    this.label.textContent = `step ${step}`;
    const most = Math.max(...this.panes.flatMap((pane) => this.steps.get(pane.spec.key).get(step)?.counts ?? [0]));
    for (const pane of this.panes) this.pane(pane, this.steps.get(pane.spec.key).get(step), most);
    for (const each of this.shares) each.draw(this.steps.get(each.spec.key).get(step), this.steps.get(each.spec.over)?.get(step));
  }

  pane(pane, histogram, most) {
    // there may be none, such as that of the other role if two learn in turns: another step's must not be shown here
    pane.body.hidden = !histogram;
    pane.missing.hidden = Boolean(histogram);
    if (!histogram) return;
    const { edges, counts } = histogram;
    const data = [edges, [...counts, counts.at(-1)]];
    pane.most = most; // one scale for both, so that the masked part is visible as missing height
    const total = counts.reduce((a, b) => a + b, 0);
    const top = counts.indexOf(Math.max(...counts));
    pane.body.setAttribute("aria-label", `${pane.spec.title}: ${total} values, most between ${number(edges[top])} and ${number(edges[top + 1])}`);
    if (!pane.plot) pane.plot = this.build(pane);
    pane.plot.setData(data);
  }

  build(pane) {
    const font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const look = { font, stroke: () => colour("--text-3"), ticks: { show: false }, gap: 4 };
    return new uPlot({
      width: pane.body.clientWidth || 300, height: 150, legend: { show: false }, padding: [8, 8, 0, 0],
      cursor: { show: false },
      scales: { x: { time: false }, y: { range: () => [0, pane.most * 1.05 || 1] } },
      series: [{}, { stroke: () => colour(pane.colour), fill: () => colour(pane.colour), width: 1, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }],
      axes: [{ ...look, size: 26, grid: { show: false } }, { ...look, size: 48, space: 40, grid: { stroke: () => colour("--line-soft"), width: 1 }, values: (u, ticks) => ticks.map((t) => (t >= 1000 ? `${+(t / 1000).toFixed(1)}k` : t)) }],
    }, [[], []], pane.body);
  }
}
