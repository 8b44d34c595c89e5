// A chart as a picture of its own, with title, legend and the names of its axes: SVG, and PNG drawn from it. In the colours of the page.
import { counted } from "./chartscale.js";
import { makeSvg } from "./format.js";

const NS = "http://www.w3.org/2000/svg";
const HEAD = 34;
const NAME = 20; // height of the line below the ticks
const ROW = 18; // of the legend
const PAD = 12;
const SHARPER = 2; // pixels of a PNG for each of the page

const round = (number) => +number.toFixed(2);

/** The path of values, in as many pieces as it has gaps; `joined`: places without a value are then not gaps. */
export function path(xs, ys, place, joined) {
  let pen = "M";
  const parts = [];
  xs.forEach((x, i) => {
    if (ys[i] === null && !joined) pen = "M";
    if (ys[i] === null || ys[i] === undefined) return;
    const { left, top } = place(x, ys[i]);
    parts.push(`${pen}${round(left)} ${round(top)}`);
    pen = "L";
  });
  return parts.join("");
}

/** The area between two columns over the places that have both. */
export function area(xs, one, other, place) {
  const both = xs.map((_, i) => i).filter((i) => Number.isFinite(one[i]) && Number.isFinite(other[i]));
  const points = [...both.map((i) => place(xs[i], one[i])), ...both.reverse().map((i) => place(xs[i], other[i]))];
  return points.length ? `M${points.map(({ left, top }) => `${round(left)} ${round(top)}`).join("L")}Z` : "";
}

/** `chart` has been drawn; `names` of its axes; `ink(name)`: a colour of the page that every program knows, such as #123456. */
export function svg(chart, names, ink) {
  const u = chart.plot;
  const dots = devicePixelRatio;
  const box = { left: u.bbox.left / dots, top: HEAD + u.bbox.top / dots, width: u.bbox.width / dots, height: u.bbox.height / dots };
  const place = (x, y) => ({ left: box.left + u.valToPos(x, "x"), top: box.top + u.valToPos(y, "y") });
  const keys = chart.shown;
  const height = HEAD + u.height + NAME + ROW * keys.length + PAD;
  const root = makeSvg("svg", { xmlns: NS, width: u.width, height, viewBox: `0 0 ${u.width} ${height}`, "font-family": "Inter, Helvetica, Arial, sans-serif", "font-size": 11 });
  const text = (words, attributes) => makeSvg("text", { fill: ink("--text-3"), ...attributes }, words);
  root.append(
    makeSvg("title", {}, chart.title),
    makeSvg("rect", { width: u.width, height, fill: ink("--surface") }),
    text(chart.title, { x: PAD, y: 21, fill: ink("--text"), "font-size": 13, "font-weight": 600 }),
    makeSvg("clipPath", { id: "plot" }, makeSvg("rect", { x: box.left, y: box.top, width: box.width, height: box.height })),
    ...spans(chart, box, place, ink, text),
    ...ticks(u, box, place, ink, text),
    makeSvg("g", { "clip-path": "url(#plot)", fill: "none", "stroke-linejoin": "round" }, ...drawn(chart, place, ink)),
    text(names.y, { x: u.width - PAD, y: 21, "text-anchor": "end" }),
    text(names.x, { x: box.left + box.width, y: HEAD + u.height + 12, "text-anchor": "end" }),
    text(counted(chart.out), { x: box.left, y: HEAD + u.height + 12 }),
    ...keys.flatMap((line, i) => {
      const top = HEAD + u.height + NAME + ROW * i + ROW / 2;
      const key = makeSvg("line", { x1: PAD, x2: PAD + 14, y1: top, y2: top, stroke: ink(line.colour), "stroke-width": 2, "stroke-dasharray": line.dash ? "4 3" : undefined });
      return [key, text(line.label, { x: PAD + 20, y: top + 4, fill: ink("--text-2") })];
    }),
  );
  return { markup: new XMLSerializer().serializeToString(root), width: u.width, height };
}

/** The backdrop of the curves: the phases of the run. */
function spans({ plot: u, board }, box, place, ink, text) {
  return (board.backdrop?.spans(board, u.scales.x) ?? []).flatMap(({ number, from, to, shade }) => {
    const [left, right] = [from, to].map((value) => round(place(value, u.scales.y.max).left));
    const shaded = makeSvg("rect", { x: left, y: box.top, width: round(right - left), height: box.height, fill: ink("--text-3"), "fill-opacity": shade });
    return right - left > 16 ? [shaded, text(String(number), { x: left + 3, y: box.top + 11, "font-size": 10 })] : [shaded];
  });
}

/** Lines across at the ticks of the values, and the words of both axes, as the page has them. */
function ticks(u, box, place, ink, text) {
  const [across, up] = u.axes.map((axis) => (axis._splits ?? []).map((value, i) => [value, axis._values[i] ?? ""]).filter(([, words]) => words !== ""));
  const inside = ([value]) => value >= u.scales.y.min && value <= u.scales.y.max;
  return [
    ...up.filter(inside).flatMap(([value, words]) => {
      const { top } = place(u.scales.x.min, value);
      return [makeSvg("line", { x1: box.left, x2: box.left + box.width, y1: round(top), y2: round(top), stroke: ink("--line-soft") }), text(words, { x: box.left - 6, y: round(top) + 4, "text-anchor": "end" })];
    }),
    ...across.map(([value, words]) => text(words, { x: round(place(value, u.scales.y.max).left), y: box.top + box.height + 16, "text-anchor": "middle" })),
  ];
}

/** Bands below, then what was measured behind what is smoothed, then the lines. */
function drawn(chart, place, ink) {
  const [xs, ...columns] = chart.data;
  const n = chart.shown.length;
  const spreads = chart.shown.filter((line) => line.banded);
  const first = n * (chart.smoothed ? 2 : 1);
  const bands = spreads.map((line, i) => makeSvg("path", { d: area(xs, columns[first + 2 * i], columns[first + 2 * i + 1], place), fill: ink(line.colour), "fill-opacity": 0.14 }));
  const curve = (column, line, more) => makeSvg("path", { d: path(xs, column, place, !line.gaps), stroke: ink(line.colour), ...more });
  const raws = chart.smoothed ? chart.shown.map((line, i) => curve(columns[n + i], line, { "stroke-width": 1, "stroke-opacity": 0.3 })) : [];
  const lines = chart.shown.map((line, i) => curve(columns[i], line, { "stroke-width": 1.75, "stroke-dasharray": line.dash ? "5 4" : undefined }));
  const few = chart.dots || xs.length < 3;
  const dots = few ? chart.shown.flatMap((line, i) => xs.filter((_, j) => Number.isFinite(columns[i][j])).map((x) => {
    const { left, top } = place(x, columns[i][xs.indexOf(x)]);
    return makeSvg("circle", { cx: round(left), cy: round(top), r: 3, fill: ink(line.colour) });
  })) : [];
  return [...bands, ...raws, ...lines, ...dots];
}

/** Makes a PNG of such a picture: a promise of a Blob. */
export async function png({ markup, width, height }) {
  const image = Object.assign(new Image(), { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup)}` });
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: width * SHARPER, height: height * SHARPER });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
