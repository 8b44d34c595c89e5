// What stands under a chart of measured shares or errors: the interval and n of a single curve, and for several curves with
// an n each a folded table of all of them, so that the chart itself need not draw more than the largest.
import { make, number } from "./format.js";

const DRAWN = 6; // bands over each other; with more nobody can tell them apart

const last = (curve) => curve?.values?.at(-1);

/** The lines to draw: all, or the largest by their newest n where each has one and there are too many. */
export function drawn(lines) {
  if (lines.length <= DRAWN || !lines.every((line) => last(line.count) !== undefined)) return lines;
  return largest(lines).slice(0, DRAWN).map((line, i) => ({ ...line, colour: `--series-${i + 1}`, dash: false }));
}

const largest = (lines) => [...lines].sort((a, b) => (last(b.count) ?? 0) - (last(a.count) ?? 0));

/** "0.4 to 0.9"; empty without an interval. A standard deviation is none. */
function interval(line, percent) {
  const ends = (line.around ?? []).map(last);
  if (!ends.length || ends.includes(undefined)) return "";
  if (ends.length === 2) return `${number(ends[0], percent)} to ${number(ends[1], percent)}`;
  if ((line.times ?? 1) === 1) return "";
  const [value, half] = [last(line.curve), line.times * ends[0]];
  return `${number(value - half, percent)} to ${number(value + half, percent)}`;
}

const count = (line) => (last(line.count) === undefined ? "" : last(line.count).toLocaleString("en"));

/** Draws `place`, the element under the chart, anew from all `lines` that have a value. */
export function annotate(place, lines, percent) {
  const known = lines.filter((line) => line.curve?.length);
  if (known.length === 1) {
    const [between, n] = [interval(known[0], percent), count(known[0])];
    place.textContent = [between && `95% interval ${between}`, n && `n ${n}`].filter(Boolean).join(" · ");
  } else if (known.length > 1 && known.some((line) => count(line))) {
    const open = place.querySelector("details")?.open;
    const rows = largest(known).map((line) => make("tr", "", ...[line.label, number(last(line.curve), percent), interval(line, percent), count(line)].map((text, i) => make(i ? "td" : "th", i ? "num" : "", text))));
    const head = make("tr", "", ...["", "value", "95% interval", "n"].map((text, i) => make("th", i ? "num" : "", text)));
    const words = known.length > DRAWN ? `Drawn are the ${DRAWN} largest of ${known.length}. All of them` : "In numbers";
    const fold = make("details", "chart-all", make("summary", "", words), make("table", "table", make("thead", "", head), make("tbody", "", ...rows)));
    fold.open = Boolean(open);
    place.replaceChildren(fold);
  }
}
