// Curves of several runs over each other. A run keeps its colour; where two share one, the later is dashed.
import { Board, Chart } from "./chart.js";
import { controls } from "./chartcontrols.js";
import { json } from "./http.js";
import { Store } from "./series.js";
import { toast } from "./toast.js";

const CHARTS = [
  { key: "eval/rubric_score", title: "Held-out rubric score", dots: true },
  { key: "reward/mean", title: "Reward" },
  { key: "policy/entropy", title: "Entropy", unit: "nats/token" },
  { key: "policy/kl", title: "KL to the untrained model", unit: "nats/token" },
  { key: "rollout/length", title: "Response length", unit: "tokens" },
  { key: "scaffold/ratio", title: "Scaffold shown", percent: true },
];
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

for (const { key, ...spec } of CHARTS) {
  const chart = new Chart(board, {
    ...spec,
    file: `compare-${place.dataset.ids.replaceAll(",", "-")}-${key.replaceAll("/", "-")}`,
    wait: "None of these runs has sent this metric.",
    lines: () => runs.map((run) => ({ label: names.get(run.id), curve: stores.get(run.id).get(key), ...looks.get(run.id) })),
  });
  place.append(chart.element);
  board.add(chart);
}
controls(board);

try {
  const keys = CHARTS.map((chart) => chart.key).join(",");
  const found = await json(`/api/v1/runs/compare?ids=${place.dataset.ids}&keys=${encodeURIComponent(keys)}&max_points=600`);
  for (const [id, curves] of Object.entries(found.curves)) stores.get(Number(id))?.load(curves);
  board.set({});
} catch (error) {
  toast(`The curves could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
}
place.removeAttribute("aria-busy");
document.querySelectorAll("[data-only-changed]").forEach((box) => {
  const sift = () => document.querySelector(".config-table").toggleAttribute("data-hide-same", box.checked);
  box.addEventListener("change", sift);
  sift();
});
