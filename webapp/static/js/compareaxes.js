// Tokens and samples across: what each of the compared runs had used up to a step, from the metrics that the comparison names for it.
import { reached } from "./chartmeasures.js";

/** {run id: {steps, values}} of the runs that tell it. `metrics`: the first that a run has counts. `ask(key)` is an answer of
/runs/table/curves. */
export async function totals(metrics, ask) {
  const held = new Map();
  for (const { key, summed } of metrics) {
    const answer = await ask(key);
    for (const { run, values } of answer.curves) if (!held.has(run)) held.set(run, risen(answer, values, summed));
  }
  return held;
}

/** Each value of a long run is the mean of a range of steps, and stands in the middle of the range. */
function risen({ steps, exact }, values, summed) {
  const width = exact ? 1 : Math.min(...steps.slice(1).map((step, i) => step - steps[i]));
  const found = { steps: [], values: [] };
  let sum = 0;
  values.forEach((value, i) => {
    if (value === null) return;
    sum = summed ? sum + value * width : value;
    found.steps.push(steps[i]);
    found.values.push(summed && !exact ? sum - (value * width) / 2 : sum);
  });
  return found;
}

/** The place of each value of a curve; null if it is not known. */
export const placedBy = (placed, steps) => ({ run }) => (placed?.has(run) ? steps.map((step) => reached(placed.get(run), step)) : steps.map(() => null));
