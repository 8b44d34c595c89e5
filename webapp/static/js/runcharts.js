// The Charts tab: first the history from the API, then the messages of the websocket. A page that is open for hours has at most LIMIT
// points for each metric (series.js), draws at most once per frame, and draws only what is on the screen.
import { layout as laidOut, metricOf, nameOf } from "./metrics.js";
import { Board, Chart } from "./chart.js";
import { csv } from "./csv.js";
import { ChartDialog } from "./chartdialog.js";
import { annotate, drawn } from "./chartnotes.js";
import { Marks } from "./chartmarks.js";
import { Measures, reached } from "./chartmeasures.js";
import { Phases } from "./chartphases.js";
import { Health } from "./health.js";
import { Pins } from "./chartpins.js";
import { CustomCharts } from "./customcharts.js";
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

const MARKS_AGAIN = 30_000; // milliseconds, while the run is under way
const place = document.getElementById("charts");
const store = new Store();
const marks = ["phase/number", "phase/budget"];
const planned = JSON.parse(document.getElementById("phases-data").textContent);
const phases = new Phases(document.getElementById("phases"), planned, () => marks.map((key) => store.get(key)), isOver);
const board = new Board({ origin: Date.parse(run.started_at ?? run.created_at) / 1000, backdrop: phases, onseen: () => [later, custom].forEach((each) => each.ask()) });
const measures = new Measures(board, api, store, JSON.parse(document.getElementById("charts-data").textContent).axes);
board.onaxis = (axis) => measures.use(axis);
const config = JSON.parse(document.getElementById("config-json").textContent);
let artifacts = []; // those that the run has left, as the API lists them
board.marks = new Marks(document.getElementById("chart-marks"), board, { items: happened, ends, placing });
const charts = new Map(); // chart id -> Chart
const byKey = new Map(); // metric key -> the charts that draw it
const sections = new Map();
const histograms = new Map(); // title -> Histograms
const overview = (key) => marks.includes(key) || health.reads(key) || metricOf(declared, key)?.held_out; // what stands over the charts is made of these
const looked = (key) => overview(key) || [...(byKey.get(key) ?? [])].some((chart) => chart.visible);
const later = new Later(api, store, looked, empty);
const find = finder(place);
const timed = declared.metrics.some(({ key }) => key === "perf/rollout_s"); // by the recipe, not by another program
const health = new Health(document.getElementById("health"), api, store, timed && !isOver());
let order = []; // ids of the groups, as the page shows them
const PINNED = { id: "pinned-charts", title: "Pinned" };
const CUSTOM = { id: "custom-charts", title: "Custom" };
const made = JSON.parse(document.getElementById("charts-data").textContent);
const pins = new Pins(api, made.pinned, (id) => {
  settle(charts.get(id));
  find();
});
const custom = new CustomCharts(board, {
  api, store, specs: made.items, mayWrite: made.may_write, file: `run-${runId}`,
  tools: (id, title) => [pins.button(id, title)],
  put: (id, chart, words) => {
    named(chart, words);
    enter(id, CUSTOM, chart);
  },
  take: (id) => {
    board.remove(charts.get(id));
    charts.delete(id);
  },
  settle: () => {
    for (const chart of charts.values()) if (chart.group === CUSTOM) settle(chart);
    find();
  },
  edit: (spec) => dialog.open(spec),
});
const dialog = made.may_write && new ChartDialog(document.getElementById("chart-dialog"), {
  api,
  keys: () => store.keys().filter((key) => !marks.includes(key)),
  titled: (key) => metricOf(declared, key)?.title ?? "",
  saved: (spec, isNew) => (isNew ? custom.made(spec) : custom.changed(spec)),
});

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

/** A chart that is new on the page. */
function enter(id, group, chart) {
  Object.assign(chart, { id, group, number: charts.size });
  chart.element.id = `chart-${id}`;
  charts.set(id, chart);
  settle(chart);
  board.add(chart);
}

/** Puts a chart where it belongs: among the pinned ones, or in its group at its place. */
function settle(chart) {
  const isPinned = pins.placeOf(chart.id) >= 0;
  const grid = section(isPinned ? PINNED : chart.group);
  const rank = ({ chart: each }) => (isPinned ? pins.placeOf(each.id) : each.group === CUSTOM ? custom.placeOf(each.id) : each.number);
  const mine = rank(chart.element);
  const last = grid.lastElementChild;
  const next = last && last !== chart.element && rank(last) < mine ? null : [...grid.children].find((each) => each !== chart.element && rank(each) > mine);
  if (chart.element.parentElement !== grid || chart.element.nextElementSibling !== (next ?? null)) grid.insertBefore(chart.element, next ?? null);
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
    tools: [pins.button(spec.id, spec.title)],
    lines: () => drawn(every(chart)),
    below: (place) => annotate(place, every(chart), spec.percent),
  });
  Object.assign(chart, { keys: spec.keys, bands: spec.bands, counts: spec.counts });
  named(chart, spec.keys);
  for (const key of [...spec.keys, ...extra]) byKey.get(key).add(chart);
  enter(spec.id, group, chart);
}

/** The words by which a chart is found. */
function named({ element, title }, keys) {
  element.dataset.words = [title, ...keys].join(" ").toLowerCase();
}

/** Marks the charts of keys without a curve, which have only histograms, or values that cannot be drawn. */
function empty(keys) {
  for (const chart of new Set(keys.flatMap((key) => [...(byKey.get(key) ?? [])])))
    if (chart.keys?.every((key) => !store.get(key)?.length && !later.keys.has(key))) chart.blank.textContent = "No value that can be drawn.";
}

/** Two metrics against each other, step by step. */
function trace(group, { x, y, ...spec }) {
  if (charts.has(spec.id)) return;
  const curves = (keys) => keys.map((key) => store.get(key));
  const points = () => pointsOf(store.get(x.key), store.get(y.key), { x: curves(x.ends), y: curves(y.ends) });
  const chart = new Trace(board, { ...spec, x, y, points, file: `run-${runId}-${spec.id}`, tools: [pins.button(spec.id, spec.title)] });
  named(chart, [x.key, y.key]);
  for (const key of [x.key, y.key, ...x.ends, ...y.ends]) byKey.set(key, (byKey.get(key) ?? new Set()).add(chart));
  enter(spec.id, group, chart);
  board.touch(chart);
}

const every = (chart) => chart.keys.map((key, i) => line(chart.bands[key], chart.counts[key], key, i));

function line(band, count, key, i) {
  return { label: nameOf(declared, key), curve: store.get(key), colour: `--series-${(i % 8) + 1}`, dash: i >= 8, around: band ? band.keys.map((each) => store.get(each)) : [], times: band?.times, told: band?.told, count: count && store.get(count) };
}

function layout() {
  const groups = laidOut(declared, store.keys());
  order = [PINNED.id, CUSTOM.id, ...groups.map((group) => group.id)];
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
  board.marks.refresh();
});

/** The curve with most points: by it a step has a time. */
const longest = () => [...store.curves.values()].reduce((best, curve) => (curve.length > best.length ? curve : best), { length: 0, steps: [], times: [] });

function ends() {
  const all = [...store.curves.values()].filter((curve) => curve.length);
  return [Math.min(...all.map(({ steps }) => steps[0])), Math.max(...all.map(({ steps }) => steps.at(-1)))];
}

/** The function from a step to its place on the axis of the charts; null while it is not known. */
function placing() {
  const found = board.placing();
  if (found === "step") return (step) => step;
  if (found !== "time") return found;
  const { steps, times } = longest();
  const known = times.map((time) => (time === null ? NaN : time - board.origin));
  return (step) => reached({ steps, values: known }, step);
}

/** [{ step, kind, href }]: checkpoints that the run has kept, its evaluations, and steps that sampled with new weights. */
function happened() {
  const found = artifacts.filter(({ role, present }) => role === "checkpoint" && present).map(({ step }) => ({ step, kind: "checkpoint", href: `/runs/${runId}/lineage` }));
  const evaluated = new Set(store.keys().filter((key) => metricOf(declared, key)?.held_out).flatMap((key) => store.get(key).steps));
  for (const step of evaluated) found.push({ step, kind: "evaluation", href: `/runs/${runId}/rollouts?phase=eval&step=${step}` });
  const [every, last] = [config.runner?.push_every ?? 1, ends()[1]];
  for (let step = every; every > 1 && step <= last; step += every) found.push({ step, kind: "push", href: `/runs/${runId}/config` });
  return found;
}

async function loadMarks() {
  try {
    artifacts = (await json(`${api}/artifacts`)).items;
    board.marks.refresh();
    board.set({});
  } catch {
    // the charts need no marks: the next time tries again
  }
}

async function load() {
  board.look();
  try {
    await later.seen();
    place.removeAttribute("aria-busy");
    await Promise.all([health.load(), later.ask(), ...[...histograms.values()].map((each) => each.load())]);
  } catch (error) {
    toast(`The charts could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
}

document.getElementById("csv-all").addEventListener("click", async () => {
  if (!(await later.all())) return;
  const keys = store.keys();
  const [steps, ...columns] = align(keys.map((key) => store.get(key)), "step");
  const rows = steps.map((step, i) => [step, ...columns.map((column) => column[i] ?? "")]);
  download(`run-${runId}.csv`, csv([["step", ...keys], ...rows]), "text/csv");
});

if (made.keys.length) later.expect(made.keys);
else layout();
custom.show();
find();
phases.list();
controls(board);
document.getElementById("chart-new")?.addEventListener("click", () => dialog.open());
// Messages that come while the history loads are kept too: points are stored by step, so the order does not matter.
onMessage("metrics", (message) => {
  store.apply(message.step, message.values ?? {});
  health.apply(message.step, message.values ?? {});
  custom.apply(message.step, message.values ?? {});
  measures.apply(message.step, message.values ?? {});
  for (const each of message.histograms ? histograms.values() : []) each.apply(message.step, message.histograms);
});
onMessage("run", () => phases.list());
onBack(() => later.again().then(load));
onBack(() => custom.again());
onBack(loadMarks);
setInterval(() => !isOver() && !document.hidden && loadMarks(), MARKS_AGAIN);
onBack(() => measures.again());
load();
loadMarks();
