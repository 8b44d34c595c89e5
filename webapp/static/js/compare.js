// Runs beside each other: curves in one chart with a band over seeds, last values with intervals and differences to a baseline, the
// differences of the configs, and any two columns against each other. One answer of the API holds everything but the curves.
// The page of a share link is the same, but it asks the link instead of the API and has no links.
import { Board, Chart } from "./chart.js";
import { placedBy, totals } from "./compareaxes.js";
import { controls } from "./chartcontrols.js";
import { comparePrompts } from "./comparedprompts.js";
import { BANDS, SERIES, across as acrossOf, gridded, groups as grouped, headOf, line, seedsOf } from "./familylines.js";
import { counted, make, number } from "./format.js";
import { json } from "./http.js";
import { scatter } from "./scatter.js";
import { toast } from "./toast.js";

const CHARTS = 6; // drawn at first
const page = document.getElementById("compare");
const asked = new URLSearchParams(page.dataset.asked);
const leads = page.dataset.asked !== undefined;
const address = new URLSearchParams(location.search);
const state = { folded: true, band: null, hidden: new Set(), baseline: address.has("baseline") ? Number(address.get("baseline")) || 0 : null, data: null, placed: null };
const board = new Board();
const charts = new Map(); // key -> { chart, curves: answer of the API }

const complain = (error) => toast(`The comparison could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
const api = (path, more) => json(`${page.dataset.source}${path}?${new URLSearchParams([...asked, ...Object.entries(more)])}`);
/** The comparison holds the last values of only so many metrics; of the others it has the names. */
const known = (key) => {
  const has = (each) => each.key === key;
  return state.data.metrics.find(has) ?? state.data.others.find(has);
};
const titled = ({ key, label }) => (label === key ? key : `${label} (${key})`);
const words = (value) => (value === null ? "–" : typeof value === "number" ? String(Number(value.toPrecision(6))) : value);

/** The metrics that tell it, if it is tokens or samples that the runs tell. */
const measure = (axis) => state.data.axes.find(({ name }) => name === axis)?.metrics;

/** Indices, label and colour of each line, which is a family of seeds or a single run. */
const groups = () => grouped(state.data, state.folded);

/** Whether a line is the mean of two seeds. Their 95% interval is 12.7 times as high as they lie apart, which nobody can read. */
const hasPairs = () => state.data.families.some((each) => seedsOf(each.runs.map((place) => state.data.runs[place])) === 2);

const shown = () => groups().filter((group) => !state.hidden.has(group.id));

function lines(key) {
  const answer = charts.get(key)?.answer;
  if (!answer) return [];
  const grid = measure(board.axis) ? gridded(answer, board.axis, placedBy(state.placed, answer.steps)) : gridded(answer, board.axis);
  return shown().map((group) => ({ ...group, ...line(grid, group.places.map((place) => state.data.runs[place]), state.band) }));
}

async function load(key) {
  const held = charts.get(key);
  held.answer = await api("curves", { key });
  const { points, exact } = held.answer;
  held.note.textContent = exact ? "" : `Each point is the mean of a range of steps: ${points} points for each run.`;
  board.touch(held.chart);
}

/** Tokens and samples are summed when somebody first asks for them. */
async function across(axis) {
  const note = document.getElementById("compare-lacking");
  note.textContent = "";
  state.placed = null;
  const metrics = measure(axis);
  if (!metrics) return;
  try {
    const placed = await totals(metrics, (key) => charts.get(key)?.answer ?? api("curves", { key }));
    if (board.axis !== axis) return;
    state.placed = placed;
    const lacking = state.data.runs.filter(({ id }) => !placed.has(id)).length;
    if (lacking) note.textContent = `Not drawn: ${lacking === 1 ? "1 run that does" : `${lacking} runs that do`} not say how many ${axis} ${lacking === 1 ? "it" : "they"} used.`;
    board.set({ measure: { name: axis, at: (step) => step } }); // the grid of the lines is already by it
  } catch (error) {
    complain(error);
  }
}

function addChart(metric) {
  if (charts.has(metric.key)) return;
  const note = make("p", "tiny muted");
  const chart = new Chart(board, {
    id: metric.key,
    title: metric.label,
    help: metric.label === metric.key ? "" : metric.key,
    percent: Boolean(metric.share),
    file: `compare-${metric.key.replaceAll("/", "-")}`,
    across: () => acrossOf(board.axis),
    lines: () => lines(metric.key),
    wait: "Loading",
  });
  chart.element.append(note);
  charts.set(metric.key, { chart, note, answer: null });
  document.getElementById("compare-charts").append(chart.element);
  board.add(chart);
  return load(metric.key).catch(complain);
}

// ---- last values ----

function estimate(final, share, cell = make("td", "num")) {
  if (final.value === null) {
    cell.append(make("span", "missing", "–"));
    cell.title = final.undefined;
    return cell;
  }
  cell.append(make("strong", "", number(final.value, share)));
  const span = final.low === null ? final.interval : `${number(final.low, share)} to ${number(final.high, share)}`;
  cell.append(make("small", "muted block", make("span", "nowrap", `${span},`), ` n\u00a0${final.n}${final.missing ? `, ${final.missing} without` : ""}`));
  return cell;
}

/** A value, and below it the difference to the baseline: in columns of their own, the table would be wider than most windows. */
function compared(metric, i, baseline) {
  const cell = estimate(metric.families[i], metric.share);
  if (metric.against) cell.append(i === baseline ? make("div", "against muted", "baseline") : difference(metric.against[i], metric));
  return cell;
}

/** The difference to the baseline. It counts as better or worse only if its interval does not contain 0. */
function difference(final, metric) {
  const cell = estimate(final, metric.share, make("div", "against"));
  if (final.value === null || final.low === null || final.low * final.high <= 0 || !metric.better) return cell;
  const good = final.value > 0 === (metric.better === "higher");
  cell.firstChild.classList.add(good ? "good" : "bad");
  cell.firstChild.prepend(good ? "better " : "worse ");
  return cell;
}

function drawFinals() {
  const { families, runs, finals, baseline } = state.data;
  const table = make("table", "table");
  const heads = finals.map((metric) => make("th", "num", metric.label, ...(metric.against ? [make("small", "muted block", "against the baseline")] : [])));
  const head = make("tr", "", make("th", "", "Shown"), make("th", "", "Config"), ...heads);
  const rows = families.map((family, i) => {
    const id = runs[family.runs[0]].id;
    const box = Object.assign(make("input"), { type: "checkbox", checked: !state.hidden.has(id) });
    box.setAttribute("aria-label", `Show ${family.label}`);
    box.addEventListener("change", () => {
      for (const place of family.runs) state.hidden[box.checked ? "delete" : "add"](runs[place].id);
      redraw();
    });
    const swatch = make("span", "swatch");
    swatch.dataset.series = (i % SERIES) + 1;
    const name = make(leads ? "a" : "span", "row-link", family.label);
    if (leads) name.href = family.runs.length > 1 ? `/experiments?${new URLSearchParams({ q: `is:any run:${family.runs.map((place) => runs[place].id).join(",")}` })}` : `/runs/${id}`;
    name.title = family.label;
    const why = family.runs.map((place) => state.data.unlike[runs[place].id]).find(Boolean);
    const names = make("td", "", make("div", "run-name", swatch, make("span", "", name, make("small", "muted block", `${runs[family.runs[0]].experiment} · `, make("span", "nowrap", counted(family.runs.length, "seed"))), ...(why ? [make("small", "warn block", `does not compare: ${why}`)] : []))));
    const cells = finals.map((metric) => compared(metric, i, baseline));
    const base = make("button", "btn small ghost", i === baseline ? "Clear baseline" : "Set as baseline");
    base.setAttribute("aria-label", `${base.textContent}: ${family.label}`);
    base.type = "button";
    base.addEventListener("click", () => setBaseline(i === baseline ? null : id));
    names.append(base);
    const row = make("tr", why ? "unlike" : "", make("td", "", box), names, ...cells);
    return row;
  });
  table.append(make("thead", "", head), make("tbody", "", ...rows));
  document.getElementById("compare-finals").replaceChildren(table);
}

async function setBaseline(id) {
  state.baseline = id ?? 0;
  const next = new URLSearchParams(location.search);
  if (id || !leads) next.set("baseline", state.baseline); // a link may have its own baseline
  else next.delete("baseline");
  history.replaceState(null, "", `?${next}`);
  wireShare();
  try {
    state.data = await overview();
    drawFinals();
  } catch (error) {
    complain(error);
  }
}

/** A shared link has the baseline that is shown. */
function wireShare() {
  const share = document.getElementById("share");
  if (share) share.search = new URLSearchParams([...asked, ...(state.baseline ? [["baseline", state.baseline]] : [])]);
}

/** A report that is begun here draws the band that is shown. */
function wireReport() {
  const report = document.getElementById("report");
  if (report) report.search = new URLSearchParams([...asked, ...(state.band === "range" ? [["band", "range"]] : [])]);
}

// ---- differences of the configs ----

/** A few runs have a column each. If there are many, each value has the number of its runs. */
function drawConfig() {
  const { config, runs } = state.data;
  const place = document.getElementById("compare-config");
  document.getElementById("compare-differences").textContent = config.length ? (config.length === 1 ? "1 config field differs" : `${config.length} config fields differ`) : "The configs are equal, seed included.";
  if (!config.length) return place.replaceChildren();
  const few = runs.length <= 8;
  const heads = few ? runs.map((run) => make("th", "", headOf(run))) : [make("th", "", "Values, and how many runs have each")];
  const body = config.map(({ path, values, held }) => {
    const head = make("th", "", make("code", "", path));
    head.scope = "row";
    if (few) return make("tr", "", head, ...held.map((which) => make("td", "mono", words(values[which]))));
    const sorted = values.map((value, which) => ({ value, n: held.filter((each) => each === which).length })).sort((a, b) => b.n - a.n);
    const chips = sorted.slice(0, 12).map(({ value, n }) => make("span", "chip square", make("code", "", words(value)), ` × ${n}`));
    if (sorted.length > 12) chips.push(make("span", "muted small", `and ${sorted.length - 12} other values`));
    return make("tr", "", head, make("td", "", make("span", "row gap-1", ...chips)));
  });
  const table = make("table", "table");
  table.dataset.density = "compact";
  table.append(make("thead", "", make("tr", "", make("th", "", "Field"), ...heads)), make("tbody", "", ...body));
  place.replaceChildren(table);
}

// ---- any two columns ----

function columns() {
  const { config, metrics } = state.data;
  const numeric = config.filter(({ values }) => values.some((value) => typeof value === "number"));
  const paths = numeric.map(({ path, values, held }) => ({ name: `config.${path}`, label: path, values: held.map((which) => (typeof values[which] === "number" ? values[which] : null)) }));
  return [...paths, ...metrics.map((metric) => ({ name: metric.key, label: titled(metric), values: metric.last }))];
}

function drawScatter() {
  const all = columns();
  const place = document.getElementById("compare-scatter");
  if (all.length < 2) return place.closest("section").setAttribute("hidden", "");
  const [x, y] = ["x", "y"].map((axis) => document.getElementById(`scatter-${axis}`));
  for (const [select, first] of [[x, all[0]], [y, all.find((each) => each.name === state.data.metrics[0]?.key) ?? all[1]]]) {
    select.replaceChildren(...all.map((each) => Object.assign(make("option", "", each.label), { value: each.name, selected: each === first })));
  }
  const draw = () => {
    const colours = new Map(groups().flatMap((group) => group.places.map((i) => [i, group.colour])));
    const points = state.data.runs.map((run, i) => ({ label: run.name, href: leads ? `/runs/${run.id}` : null, hidden: state.hidden.has(run.id), colour: colours.get(i), x: all.find((each) => each.name === x.value).values[i], y: all.find((each) => each.name === y.value).values[i] }));
    scatter(place, points, { x: x.selectedOptions[0].text, y: y.selectedOptions[0].text, logX: document.getElementById("scatter-log").checked });
  };
  for (const control of [x, y, document.getElementById("scatter-log")]) control.onchange = draw;
  state.scatter = draw;
  draw();
}

// ---- all together ----

function redraw() {
  for (const { chart } of charts.values()) chart.shape = "";
  board.set({});
  state.scatter?.();
}

const overview = () => api("compare", state.baseline || (state.baseline === 0 && !leads) ? { baseline: state.baseline } : {});

function wire() {
  const fold = document.getElementById("compare-fold");
  fold.closest("label").hidden = !state.data.families.some((each) => each.runs.length > 1);
  const band = document.getElementById("compare-band");
  const why = document.getElementById("compare-band-why");
  const offer = () => {
    band.closest("label").hidden = fold.closest("label").hidden || !fold.checked;
    why.hidden = band.closest("label").hidden || !hasPairs();
  };
  fold.addEventListener("change", () => {
    state.folded = fold.checked;
    offer();
    redraw();
  });
  offer();
  band.append(...Object.entries(BANDS).map(([value, told]) => Object.assign(make("option", "", told), { value })));
  band.value = state.band;
  band.addEventListener("change", () => {
    state.band = band.value;
    const next = new URLSearchParams(location.search);
    next.set("band", state.band);
    history.replaceState(null, "", `?${next}`);
    wireReport();
    redraw();
  });
  const more = document.getElementById("compare-metric");
  const unseen = state.data.keys.filter((key) => !charts.has(key));
  more.append(...unseen.map((key) => Object.assign(make("option", "", titled(known(key))), { value: key })));
  more.closest("label").hidden = !unseen.length;
  more.addEventListener("change", () => {
    addChart(known(more.value));
    more.selectedOptions[0].remove();
    more.value = "";
  });
  for (const button of document.querySelectorAll("[data-axis]")) if (!["step", "time"].includes(button.dataset.axis) && !measure(button.dataset.axis)) button.remove();
  board.onaxis = across;
  controls(board);
}

try {
  state.data = await overview();
  state.band = BANDS[address.get("band")] ? address.get("band") : hasPairs() ? "range" : "interval";
  wireShare();
  wireReport();
  drawFinals();
  drawConfig();
  for (const metric of state.data.metrics.slice(0, CHARTS)) addChart(metric);
  drawScatter();
  wire();
  comparePrompts(state.data.runs, state.baseline, complain);
} catch (error) {
  if (!state.data) document.getElementById("compare-finals").replaceChildren(make("p", "empty", `The comparison could not be loaded: ${error.message}`));
  complain(error);
}
page.removeAttribute("aria-busy");
