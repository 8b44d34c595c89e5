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

/** The mean of these runs; if there are several, with a band from the lowest to the highest. */
export function line({ xs, held }, runs) {
  const those = runs.map((run) => held.get(run)).filter(Boolean);
  const at = xs.map((x, i) => those.map((values) => values[i]).filter((value) => value !== null && value !== undefined));
  const over = (fold) => curve(xs.map((x, i) => [x, at[i].length ? fold(at[i]) : null]));
  const mean = over((values) => values.reduce((sum, value) => sum + value, 0) / values.length);
  return those.length > 1 ? { curve: mean, around: [over((values) => Math.min(...values)), over((values) => Math.max(...values))] } : { curve: mean };
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
