// The note under a chart of measured shares or errors: the interval and n of a single curve, or a folded table if several curves have an
// n, so that the chart itself need draw only the largest.
import { make, number } from "./format.js";
import { total } from "./series.js";

const DRAWN = 6; // more curves with overlapping bands could not be told apart

const last = (curve) => curve?.values?.at(-1);

/** The lines to draw: all, or the largest by their newest n if there are too many and each has one. If the value is itself
 *  an n, one line has the sum of the others. */
export function drawn(lines) {
  if (lines.length <= DRAWN || !lines.every((line) => last(line.count) !== undefined)) return lines;
  const rows = largest(lines);
  const shown = rows.slice(0, DRAWN).map((line, i) => ({ ...line, colour: `--series-${i + 1}`, dash: false }));
  const rest = rows.slice(DRAWN);
  if (!lines.every(isCount)) return shown;
  const label = rest.length === 1 ? rest[0].label : `${rest.length} others together`;
  return [...shown, { label, curve: total(rest.map((line) => line.curve)), colour: "--series-8", dash: true, around: [] }];
}

const isCount = (line) => line.count === line.curve;

const largest = (lines) => [...lines].sort((a, b) => (last(b.count) ?? 0) - (last(a.count) ?? 0));

/** "0.4 to 0.9"; empty without an interval. A standard deviation is not an interval. */
function interval(line, percent) {
  const ends = (line.around ?? []).map(last);
  if (!ends.length || ends.includes(undefined)) return "";
  if (ends.length === 2) return `${number(ends[0], percent)} to ${number(ends[1], percent)}`;
  if ((line.times ?? 1) === 1) return "";
  const [value, half] = [last(line.curve), line.times * ends[0]];
  return `${number(value - half, percent)} to ${number(value + half, percent)}`;
}

const count = (line) => (last(line.count) === undefined ? "" : last(line.count).toLocaleString("en"));

/** Draws `place`, the element under the chart, again from all `lines` with a value. */
export function annotate(place, lines, percent) {
  const known = lines.filter((line) => line.curve?.length);
  if (known.length === 1) {
    const [between, n] = [interval(known[0], percent), isCount(known[0]) ? "" : count(known[0])];
    place.textContent = [between && `${known[0].told ?? "95% interval"} ${between}`, n && `n ${n}`].filter(Boolean).join(" · ");
  } else if (known.length > 1 && known.some((line) => count(line))) {
    const open = place.querySelector("details")?.open;
    const bare = known.every(isCount); // then the value is the n itself, and has no interval
    const cells = (line) => (bare ? [line.label, count(line)] : [line.label, number(last(line.curve), percent), interval(line, percent), count(line)]);
    const rows = largest(known).map((line) => make("tr", "", ...cells(line).map((text, i) => make(i ? "td" : "th", i ? "num" : "", text))));
    const head = make("tr", "", ...(bare ? ["", "n"] : ["", "value", "95% interval", "n"]).map((text, i) => make("th", i ? "num" : "", text)));
    const words = known.length > DRAWN ? `The chart shows the ${DRAWN} largest of ${known.length}. Show all` : "In numbers";
    const fold = make("details", "chart-all", make("summary", "", words), make("table", "table", make("thead", "", head), make("tbody", "", ...rows)));
    fold.open = Boolean(open);
    place.replaceChildren(fold);
  }
}
