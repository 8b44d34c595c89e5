// Two columns of many runs against each other, as SVG. A point links to its run, if it has a link.
import { make, makeSvg, number } from "./format.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, AIR] = [720, 320, 56, 36, 12];

function scale(values, from, to, log) {
  const size = (value) => (log ? Math.log10(value) : value);
  const low = Math.min(...values.map(size));
  const high = Math.max(...values.map(size));
  const share = (value) => (high === low ? 0.5 : (size(value) - low) / (high - low)); // values that are all the same stand in the middle
  return { at: (value) => from + share(value) * (to - from), least: Math.min(...values), most: Math.max(...values) };
}

const ends = ({ least, most }) => [...new Set([least, most])];

/** `points`: { label, href or null, x, y, colour, hidden }. Points without a place are counted in words. */
export function scatter(place, points, { x, y, logX }) {
  const seen = points.filter((point) => !point.hidden);
  const placed = seen.filter((point) => point.x !== null && point.y !== null && (!logX || point.x > 0));
  const missing = seen.length - placed.length;
  const said = missing ? `${missing} of ${seen.length} runs have no value in one of the two${logX ? ", or none above 0" : ""}.` : "";
  if (!placed.length) return place.replaceChildren(make("p", "muted", said || "No run is shown."));
  const across = scale(placed.map((point) => point.x), LEFT + AIR, WIDTH - AIR, logX);
  const up = scale(placed.map((point) => point.y), HEIGHT - BOTTOM - AIR, AIR, false);
  const dots = placed.map((point) => {
    const dot = makeSvg("circle", { cx: across.at(point.x).toFixed(1), cy: up.at(point.y).toFixed(1), r: 4 });
    dot.style.fill = `var(${point.colour})`;
    const title = makeSvg("title", {}, `${point.label}: ${x} ${number(point.x)}, ${y} ${number(point.y)}`);
    const drawn = makeSvg("g", {}, title, dot);
    return point.href ? makeSvg("a", { href: point.href, "aria-label": title.textContent }, drawn) : drawn;
  });
  const text = (words, attributes) => makeSvg("text", { class: "scatter-text", ...attributes }, words);
  const drawn = makeSvg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "scatter", role: "group", "aria-label": `${y} against ${x}, ${placed.length} runs` },
    makeSvg("path", { class: "scatter-axes", d: `M${LEFT} ${AIR}V${HEIGHT - BOTTOM}H${WIDTH - AIR}` }),
    ...ends(up).map((value) => text(number(value), { x: LEFT - 6, y: up.at(value) + 4, "text-anchor": "end" })),
    ...ends(across).map((value, place) => text(number(value), { y: HEIGHT - BOTTOM + 14, ...(place ? { x: WIDTH, "text-anchor": "end" } : { x: across.at(value), "text-anchor": "middle" }) })),
    text(x, { x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, "text-anchor": "middle" }),
    ...dots,
  );
  place.replaceChildren(drawn, ...(said ? [make("p", "small muted", said)] : []));
}
