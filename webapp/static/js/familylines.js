// Lines of many runs on one grid. Runs that differ only by their seed are one line with a band. Compare and reports draw them.
import { make } from "./format.js";
import { Curve } from "./series.js";

export const SERIES = 8;
const GRID = 200; // places of a time axis

/** The name of a run at the head of a column: of a long one the beginning, in two lines. */
export function headOf({ name }) {
  return Object.assign(make("span", "run-head", name), { title: name });
}

/** A curve of points [x, value], by rising x, without those whose value is null. */
export function curve(points) {
  const made = new Curve();
  for (const [x, value] of points) if (value !== null && value !== undefined) made.set(x, value, x);
  return made;
}

/** The name of what the values of a `gridded` axis count. */
export const across = (axis) => (axis === "time" ? "seconds" : axis);

/** {run id: values} from an answer of /runs/table/curves, on one grid for all, so that seeds can be averaged and a thousand lines share
their x. `placesOf(curve)` says where its values lie if that is not the step; without it, by time. */
export function gridded(answer, axis, placesOf = ({ times }) => times) {
  if (axis === "step") return { xs: answer.steps, held: new Map(answer.curves.map((each) => [each.run, each.values])) };
  const places = new Map(answer.curves.map((each) => [each.run, placesOf(each)]));
  const longest = Math.max(1, ...[...places.values()].flat().filter((place) => place !== null));
  const size = longest / GRID;
  const held = answer.curves.map((each) => {
    const values = new Array(GRID + 1).fill(null);
    const at = places.get(each.run);
    each.values.forEach((value, i) => value !== null && at[i] !== null && (values[Math.floor(at[i] / size)] = value));
    return [each.run, values];
  });
  return { xs: Array.from({ length: GRID + 1 }, (_, i) => i * size), held: new Map(held) };
}

/** The bands around a mean over seeds, the first one unless somebody chooses another. */
export const BANDS = { interval: "95% interval of the mean over seeds (Student's t)", range: "lowest to highest seed" };

/** The seeds of runs, which are a line. A run whose seed is not known counts by itself. */
export const seedsOf = (runs) => new Set(runs.map(({ id, seed }) => seed ?? `run ${id}`)).size;

/** The 97.5% quantile of Student's t: exact for few seeds, then the expansion of Cornish and Fisher (below 0.1% wrong). */
export function quantile(freedom) {
  const [z, few] = [1.959964, [12.7062, 4.3027, 3.1824, 2.7764]];
  const terms = [z, (z ** 3 + z) / 4, (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96, (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384];
  return few[freedom - 1] ?? terms.reduce((sum, term, i) => sum + term / freedom ** i, 0);
}

const meanOf = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Half of the 95% interval of the mean of two values or more. */
function half(values) {
  const mean = meanOf(values);
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  return quantile(values.length - 1) * Math.sqrt(variance / values.length);
}

/** [index of a place] -> the values there, one for each seed: the mean of its runs. A run whose seed is not known counts by itself. */
function bySeed({ xs, held }, runs) {
  const seeds = new Map();
  for (const { id, seed } of runs) {
    if (!held.has(id)) continue;
    const key = seed ?? `run ${id}`;
    seeds.set(key, [...(seeds.get(key) ?? []), held.get(id)]);
  }
  const given = (values) => values.filter((value) => value !== null && value !== undefined);
  const at = xs.map((_, i) => [...seeds.values()].map((those) => given(those.map((values) => values[i]))).filter((those) => those.length).map(meanOf));
  return { at, seeds: seeds.size };
}

/** The mean over seeds of these runs ({ id, seed }); if there are several seeds, with a band. An interval of two or three seeds can be many
times as high as the curves, so the axis follows the seeds (`limits`) and the band may leave the chart. */
export function line(grid, runs, band = "interval") {
  const { at, seeds } = bySeed(grid, runs);
  const over = (fold) => curve(grid.xs.map((x, i) => [x, at[i].length ? fold(at[i]) : null]));
  const mean = over(meanOf);
  if (seeds < 2) return { curve: mean };
  const limits = [over((values) => Math.min(...values)), over((values) => Math.max(...values))];
  if (band === "range") return { curve: mean, around: limits };
  const end = (sign) => over((values) => (values.length < 2 ? null : meanOf(values) + sign * half(values)));
  return { curve: mean, around: [end(-1), end(1)], limits };
}

/** The families of an answer of /runs/table/compare, or its single runs, each with label, ids, colour and dash. */
export function groups({ runs, families }, folded) {
  const those = folded ? families.map((each) => ({ label: each.label, places: each.runs })) : runs.map((run, i) => ({ label: run.name, places: [i] }));
  return those.map(({ label, places }, i) => {
    const id = runs[places[0]].id;
    const series = folded ? (i % SERIES) + 1 : ((id - 1) % SERIES) + 1;
    return { label, places, id, colour: `--series-${series}`, dash: Math.floor(i / SERIES) % 2 === 1 };
  });
}
