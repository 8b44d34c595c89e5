// Charts in a report. They are drawn from the answers that the page Compare uses, or from those of a share link, and again while one of
// their runs is under way.
import { Board, Chart } from "./chart.js";
import { BANDS, across, gridded, groups, line, seedsOf } from "./familylines.js";
import { make } from "./format.js";
import { json } from "./http.js";

const AGAIN = 10_000; // milliseconds, while a run is under way
const EACH = 600; // more milliseconds between two updates for every request of the page, because a share link answers 240 a minute
const OVER = new Set(["finished", "stopped", "failed"]);
let made = 0;

/** The number of requests for one update of all charts of the page. */
const requests = () => document.querySelectorAll("[data-report-chart], [data-report-chart] .chart").length;

class ReportCharts {
  /** `place`: an element with `data-report-chart`, the JSON of the block. */
  constructor(place) {
    this.place = place;
    this.asked = JSON.parse(place.dataset.reportChart);
    this.board = new Board({ axis: this.asked.axis, smoothing: this.asked.smoothing, name: `report ${++made}` });
    this.board.log = this.asked.log;
    if (this.asked.range) for (const { key } of this.asked.metrics) this.board.limits.set(key, this.asked.range);
    this.charts = this.asked.metrics.map(({ key, label, share }) => this.chart(key, label, share));
    this.live = make("p", "tiny muted report-live");
    this.live.hidden = true;
    place.replaceChildren(...this.charts.map(({ chart }) => chart.element));
    place.after(this.live);
    for (const { chart } of this.charts) this.board.add(chart);
    this.load();
  }

  chart(key, label, share) {
    const held = { key, answer: null };
    const file = `report-${key.replaceAll("/", "-")}`;
    held.chart = new Chart(this.board, { id: key, title: label, help: label === key ? "" : key, percent: share, file, across: () => across(this.board.axis), lines: () => this.lines(held), wait: "Loading" });
    return held;
  }

  lines({ answer }) {
    if (!answer || !this.data) return [];
    const grid = gridded(answer, this.board.axis);
    return groups(this.data, !this.asked.apart).map((group) => ({ ...group, ...line(grid, group.places.map((place) => this.data.runs[place]), this.asked.band) }));
  }

  api(path, more) {
    return json(`${this.asked.source}${path}?${new URLSearchParams([...new URLSearchParams(this.asked.asked), ...Object.entries(more)])}`);
  }

  async load() {
    try {
      this.data = await this.api("compare", { keys: this.asked.metrics.map(({ key }) => key).join(",") });
      await Promise.all(this.charts.map((held) => this.loadOne(held)));
      this.tell();
    } catch (error) {
      for (const { chart } of this.charts) if (!chart.plot) chart.blank.textContent = `This chart cannot be drawn: ${error.message}`;
      this.live.hidden = false;
      this.live.textContent = this.data ? `Not brought up to date: ${error.message}` : "";
    }
    this.place.removeAttribute("aria-busy");
    if (this.underWay()) setTimeout(() => this.again(), Math.max(AGAIN, EACH * requests()));
  }

  async loadOne(held) {
    held.answer = await this.api("curves", { key: held.key });
    if (!held.answer.curves.length) held.chart.blank.textContent = this.underWay() ? `No values of ${held.key} yet.` : `None of these runs has ${held.key}.`;
    this.board.touch(held.chart);
  }

  /** The number of its runs that are not over. */
  underWay() {
    return this.data ? this.data.runs.filter((run) => !OVER.has(run.state)).length : 0;
  }

  tell() {
    const running = this.underWay();
    const all = this.data.runs.length;
    const lines = groups(this.data, !this.asked.apart);
    const banded = lines.some(({ places }) => seedsOf(places.map((place) => this.data.runs[place])) > 1);
    const told = [lines.length === 1 ? lines[0].label : "", banded ? `band: ${BANDS[this.asked.band]}` : "", running ? `live: ${running} of ${all} run${all === 1 ? "" : "s"} under way` : ""].filter(Boolean);
    this.live.hidden = !told.length;
    this.live.textContent = told.join(" · ");
  }

  fit() {
    for (const { chart } of this.charts) {
      chart.fit();
      chart.plot?.redraw(false);
    }
  }

  /** Updates again later, but not for a page at which nobody looks, or for a block that is gone. */
  again() {
    if (!this.place.isConnected) return;
    if (!document.hidden) return this.load();
    document.addEventListener("visibilitychange", () => this.again(), { once: true });
  }
}

/** Draws every chart below `root` that is not drawn yet. */
export function draw(root) {
  return [...root.querySelectorAll("[data-report-chart]:not([data-drawn])")].map((place) => {
    place.dataset.drawn = "";
    return new ReportCharts(place);
  });
}
