// The vertical range of a chart, and what has no place in it. Nothing is left out of a picture without being counted.

const FEWEST = 20; // values; of fewer, none is told to be an outlier
const SHARE = 0.01; // of the values that do not count at either end, at least LEAST of them
const LEAST = 2;
const MARGIN = 0.06; // room at the ends of a log scale
const AIR = 0.5; // how far beyond the others a value has to be, in sizes of their range

/** The lowest and the highest of `values` without outliers, or null if there is no telling. On a log scale distances are factors. */
export function middle(values, log = false) {
  const sorted = Float64Array.from(log ? values.filter((value) => value > 0).map(Math.log10) : values).sort();
  if (sorted.length < FEWEST) return null;
  const cut = Math.max(LEAST, Math.ceil(sorted.length * SHARE));
  const [low, high] = [sorted[cut], sorted.at(-1 - cut)];
  if (low === high) return null;
  const ends = [Math.max(sorted[0], low - AIR * (high - low)), Math.min(sorted.at(-1), high + AIR * (high - low))];
  return log ? [10 ** (ends[0] - MARGIN * (high - low)), 10 ** (ends[1] + MARGIN * (high - low))] : ends;
}

/** The values of `columns` that are measured between two places of the horizontal axis; all of them without `zoom`. */
export function inView(xs, columns, zoom) {
  const seen = (x) => !zoom || (x >= zoom.min && x <= zoom.max);
  return columns.flatMap((column) => column.filter((value, i) => Number.isFinite(value) && seen(xs[i])));
}

/** Points without a place: `above` and `below` the range [low, high] (null: it holds all), `never` on a log scale, for every range.
 *  `spots` are those above and below: { line, x, above }. */
export function outside(xs, columns, zoom, range, log) {
  const found = { above: 0, below: 0, never: 0, spots: [] };
  columns.forEach((column, line) => column.forEach((value, i) => {
    if (!Number.isFinite(value) || (zoom && (xs[i] < zoom.min || xs[i] > zoom.max))) return;
    if (log && value <= 0) found.never += 1;
    else if (range && (value < range[0] || value > range[1])) {
      const above = value > range[1];
      found[above ? "above" : "below"] += 1;
      found.spots.push({ line, x: xs[i], above });
    }
  }));
  return found;
}

/** "2 above, 1 below"; empty if every point has its place. */
export function counted({ above, below, never }) {
  const parts = [above && `${above.toLocaleString("en")} above`, below && `${below.toLocaleString("en")} below`, never && `${never.toLocaleString("en")} at or below 0`];
  const told = parts.filter(Boolean).join(", ");
  return told && `Not shown: ${told}`;
}
