// Curves of several runs over each other. A run keeps its colour; where two share one, the later is dashed.
import { Board, Chart } from "./chart.js";
import { controls } from "./chartcontrols.js";
import { make } from "./format.js";
import { json } from "./http.js";
import { layout, nameOf } from "./metrics.js";
import { Store } from "./series.js";
import { toast } from "./toast.js";

const place = document.getElementById("compare-charts");
const runs = JSON.parse(document.getElementById("compare-data").textContent);
const series = (id) => ((id - 1) % 8) + 1;
const stores = new Map(runs.map((run) => [run.id, new Store()]));
const board = new Board();
const used = new Set();
const looks = new Map();
for (const run of runs) {
  looks.set(run.id, { colour: `--series-${series(run.id)}`, dash: used.has(series(run.id)) });
  used.add(series(run.id));
}
const names = new Map(runs.map((run) => [run.id, runs.some((other) => other !== run && other.name === run.name) ? `${run.experiment.name} · ${run.name}` : run.name]));

/** What the recipes of all runs declare, as one: a key that several of them know is drawn as the first of them says. */
const recipes = Object.values(JSON.parse(document.getElementById("recipes-data").textContent));
const metrics = recipes.flatMap((recipe) => recipe.metrics);
const declared = { groups: recipes[0]?.groups ?? [], metrics: metrics.filter((metric, i) => metrics.findIndex((other) => other.key === metric.key) === i), traces: [], histograms: [] };

/** One chart for each metric that any of the runs has sent, under the heading of its group. */
function draw(keys) {
  for (const group of layout(declared, keys)) {
    const grid = make("div", `chart-grid${group.small ? " is-small" : ""}`);
    for (const spec of group.charts) for (const key of spec.keys.filter((each) => keys.includes(each))) grid.append(chart(spec, key).element);
    if (grid.childElementCount) place.append(make("section", "chart-group", make("h2", "", group.title), grid));
  }
}

function chart(spec, key) {
  const made = new Chart(board, {
    ...spec,
    title: spec.keys.length > 1 ? `${spec.title}, ${nameOf(declared, key)}` : spec.title,
    file: `compare-${place.dataset.ids.replaceAll(",", "-")}-${key.replaceAll("/", "-")}`,
    lines: () => runs.map((run) => ({ label: names.get(run.id), curve: stores.get(run.id).get(key), ...looks.get(run.id) })),
  });
  return board.add(made);
}

try {
  const pages = await Promise.all(runs.map((run) => json(`/api/v1/runs/${run.id}/curves?max_points=600`)));
  pages.forEach((found, i) => stores.get(runs[i].id).load(found.curves));
  draw([...new Set(pages.flatMap((found) => found.keys))].sort());
  controls(board);
} catch (error) {
  toast(`The curves could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
}
place.removeAttribute("aria-busy");
document.querySelectorAll("[data-only-changed]").forEach((box) => {
  const sift = () => document.querySelector(".config-table").toggleAttribute("data-hide-same", box.checked);
  box.addEventListener("change", sift);
  sift();
});
