// The share of each bin of a histogram that another histogram has. If the bins are stated probabilities, this is a reliability diagram.
// Points are shares, with 95% Wilson intervals as a band. On the dashed diagonal, a share equals the middle of its bin.
import { make, number } from "./format.js";
import { colour, faint } from "./chart.js";
import uPlot from "../vendor/uplot.js";

const Z2 = 1.96 ** 2;

/** For every bin that is not empty: its middle, the share, and both ends of its interval; null for the others. */
export function shares(part, whole) {
  return whole.counts.map((n, i) => {
    const middle = (whole.edges[i] + whole.edges[i + 1]) / 2;
    if (!n) return { middle, n, share: null, low: null, high: null };
    const share = part.counts[i] / n;
    const centre = (share + Z2 / (2 * n)) / (1 + Z2 / n);
    const half = Math.sqrt(Z2 * (share * (1 - share) / n + Z2 / (4 * n * n))) / (1 + Z2 / n);
    return { middle, n, share, low: Math.max(0, centre - half), high: Math.min(1, centre + half) };
  });
}

export class Shares {
  constructor(spec) {
    this.spec = spec;
    this.plot = null;
    this.element = make("div", "histogram");
    this.body = make("div", "histogram-body");
    this.body.setAttribute("role", "img");
    const caption = make("p", "tiny", make("strong", "", "Share of each bin"));
    caption.append(make("span", "muted", " Points, with 95% intervals; the dashed line is the middle of the bin."));
    this.element.append(this.body, caption);
  }

  draw(part, whole) {
    if (!part || !whole) return;
    const rows = shares(part, whole);
    const told = rows.filter((row) => row.n).map((row) => `${number(row.share)} of ${row.n} at ${number(row.middle)}`);
    this.body.setAttribute("aria-label", `${this.spec.title}, share of each bin: ${told.join(", ")}`);
    this.range = [whole.edges[0], whole.edges.at(-1)];
    const middles = rows.map((row) => row.middle);
    if (!this.plot) this.plot = this.build();
    this.plot.setData([middles, middles, ...["share", "high", "low"].map((name) => rows.map((row) => row[name]))]);
  }

  build() {
    const font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const look = { font, stroke: () => colour("--text-3"), ticks: { show: false }, gap: 4 };
    const hidden = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
    const point = { show: true, size: 6, fill: () => colour("--series-3") };
    return new uPlot({
      width: this.body.clientWidth || 300, height: 150, legend: { show: false }, padding: [8, 8, 0, 0],
      cursor: { show: false },
      scales: { x: { time: false, range: () => this.range }, y: { range: () => [0, 1.02] } },
      series: [{}, { stroke: () => colour("--text-3"), width: 1, dash: [4, 4], points: { show: false } }, { stroke: () => colour("--series-3"), width: 1.75, spanGaps: true, points: point }, hidden, hidden],
      bands: [{ series: [3, 4], fill: () => faint("--series-3", 0.14) }],
      axes: [{ ...look, size: 26, grid: { show: false } }, { ...look, size: 48, space: 40, grid: { stroke: () => colour("--line-soft"), width: 1 } }],
    }, [[], [], [], [], []], this.body);
  }
}
