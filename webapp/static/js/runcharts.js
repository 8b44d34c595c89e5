// The Charts tab: first the history from the API, then the messages of the websocket. A page that is open for hours has at most LIMIT
// points for each metric (series.js), draws at most once per frame, and draws only what is on the screen.
import { layout as laidOut, nameOf } from "./metrics.js";
import { Board, Chart } from "./chart.js";
import { csv } from "./csv.js";
import { annotate, drawn } from "./chartnotes.js";
import { Phases } from "./chartphases.js";
import { Health } from "./health.js";
import { Histograms } from "./histogram.js";
import { Later } from "./latercurves.js";
import { Store, align } from "./series.js";
import { Trace, pointsOf } from "./trace.js";
import { api, declared, isOver, onBack, onMessage, run, runId } from "./run.js";
import { controls } from "./chartcontrols.js";
import { finder } from "./chartfinder.js";
import { download, make } from "./format.js";
import { json } from "./http.js";
import { toast } from "./toast.js";

const place = document.getElementById("charts");
const store = new Store();
const marks = ["phase/number", "phase/budget"];
const planned = JSON.parse(document.getElementById("phases-data").textContent);
const phases = new Phases(document.getElementById("phases"), planned, () => marks.map((key) => store.get(key)), isOver);
const board = new Board({ origin: Date.parse(run.started_at ?? run.created_at) / 1000, backdrop: phases, onseen: () => later.ask() });
const charts = new Map(); // chart id -> Chart
const byKey = new Map(); // metric key -> the charts that draw it
const sections = new Map();
const histograms = new Map(); // title -> Histograms
const looked = (key) => marks.includes(key) || [...(byKey.get(key) ?? [])].some((chart) => chart.visible);
const later = new Later(api, store, looked, empty);
const find = finder(place);
const timed = declared.metrics.some(({ key }) => key === "perf/rollout_s"); // by the recipe, not by another program
const health = new Health(document.getElementById("health"), api, store, timed && !isOver());
let order = []; // ids of the groups, as the page shows them

function section(group) {
  if (sections.has(group.id)) return sections.get(group.id);
  const grid = make("div", `chart-grid${group.small ? " is-small" : ""}`);
  const element = make("section", "chart-group", make("h2", "", group.title));
  element.id = group.id;
  if (group.lede) element.append(make("p", "small muted", group.lede));
  element.append(grid);
  const next = [...place.children].find((other) => order.indexOf(other.id) > order.indexOf(group.id));
  place.insertBefore(element, next ?? null);
  sections.set(group.id, grid);
  return grid;
}

function add(group, spec) {
  const extra = [...Object.values(spec.bands).flatMap((band) => band.keys), ...Object.values(spec.counts)];
  const existing = charts.get(spec.id);
  for (const key of [...spec.keys, ...extra]) {
    if (!byKey.has(key)) byKey.set(key, new Set());
    if (existing) byKey.get(key).add(existing);
  }
  if (existing) {
    Object.assign(existing, { keys: spec.keys, bands: spec.bands, counts: spec.counts }); // a component that came later
    named(existing, spec.keys);
    return;
  }
  const chart = new Chart(board, {
    ...spec,
    wait: spec.keys.some((key) => later.keys.has(key)) ? "Loading" : isOver() ? "The run is over and has no value here." : undefined,
    file: `run-${runId}-${spec.id}`,
    lines: () => drawn(every(chart)),
    below: (place) => annotate(place, every(chart), spec.percent),
  });
  Object.assign(chart, { keys: spec.keys, bands: spec.bands, counts: spec.counts });
  chart.element.id = `chart-${spec.id}`;
  named(chart, spec.keys);
  charts.set(spec.id, chart);
  for (const key of [...spec.keys, ...extra]) byKey.get(key).add(chart);
  section(group).append(chart.element);
  board.add(chart);
}

/** The words by which a chart is found. */
function named({ element, title }, keys) {
  element.dataset.words = [title, ...keys].join(" ").toLowerCase();
}

/** Marks the charts of keys without a curve, which have only histograms, or values that cannot be drawn. */
function empty(keys) {
  for (const chart of new Set(keys.flatMap((key) => [...(byKey.get(key) ?? [])])))
    if (chart.keys?.every((key) => !store.get(key)?.length)) chart.blank.textContent = "No value that can be drawn.";
}

/** Two metrics against each other, step by step. */
function trace(group, { x, y, ...spec }) {
  if (charts.has(spec.id)) return;
  const curves = (keys) => keys.map((key) => store.get(key));
  const points = () => pointsOf(store.get(x.key), store.get(y.key), { x: curves(x.ends), y: curves(y.ends) });
  const chart = new Trace(board, { ...spec, x, y, points, file: `run-${runId}-${spec.id}` });
  chart.element.id = `chart-${spec.id}`;
  named(chart, [x.key, y.key]);
  charts.set(spec.id, chart);
  for (const key of [x.key, y.key, ...x.ends, ...y.ends]) byKey.set(key, (byKey.get(key) ?? new Set()).add(chart));
  section(group).append(chart.element);
  board.add(chart);
  board.touch(chart);
}

const every = (chart) => chart.keys.map((key, i) => line(chart.bands[key], chart.counts[key], key, i));

function line(band, count, key, i) {
  return { label: nameOf(declared, key), curve: store.get(key), colour: `--series-${(i % 8) + 1}`, dash: i >= 8, around: band ? band.keys.map((each) => store.get(each)) : [], times: band?.times, count: count && store.get(count) };
}

function layout() {
  const groups = laidOut(declared, store.keys());
  order = groups.map((group) => group.id);
  for (const group of groups) {
    for (const spec of group.charts) add(group, spec);
    for (const spec of group.traces) trace(group, spec);
    for (const title of new Set(group.histograms.map((each) => each.chart))) {
      if (histograms.has(title)) continue;
      const specs = group.histograms.filter((each) => each.chart === title);
      histograms.set(title, new Histograms(api, title, specs));
      named({ element: histograms.get(title).element, title }, specs.map((each) => each.key));
      section(group).after(histograms.get(title).element);
    }
  }
  find();
}

let known = "";
store.listen((keys) => {
  const now = store.keys().join();
  if (now !== known) {
    known = now;
    layout();
  }
  if (marks.some((key) => keys.includes(key))) {
    phases.list();
    for (const chart of charts.values()) board.touch(chart);
  }
  for (const key of keys) for (const chart of byKey.get(key) ?? []) board.touch(chart);
});

async function load() {
  try {
    const found = await json(`${api}/curves?max_points=1000`);
    later.expect(found.more);
    store.load(found.curves);
    later.ask();
    await Promise.all([health.load(), ...[...histograms.values()].map((each) => each.load())]);
  } catch (error) {
    toast(`The charts could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
  place.removeAttribute("aria-busy");
}

document.getElementById("csv-all").addEventListener("click", async () => {
  if (!(await later.all())) return;
  const keys = store.keys();
  const [steps, ...columns] = align(keys.map((key) => store.get(key)), "step");
  const rows = steps.map((step, i) => [step, ...columns.map((column) => column[i] ?? "")]);
  download(`run-${runId}.csv`, csv([["step", ...keys], ...rows]), "text/csv");
});

layout();
phases.list();
controls(board);
// Messages that come while the history loads are kept too: points are stored by step, so the order does not matter.
onMessage("metrics", (message) => {
  store.apply(message.step, message.values ?? {});
  health.apply(message.step, message.values ?? {});
  for (const each of message.histograms ? histograms.values() : []) each.apply(message.step, message.histograms);
});
onMessage("run", () => phases.list());
onBack(load);
load();
