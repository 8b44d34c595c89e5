// The events of a run, over its charts: checkpoints, evaluations, and steps that began with new weights of the sampler. Each is a
// link at its place on the axis, and a tick on every chart. Marks that are too near on the screen are one mark with a count, which zooms in.
import { colour } from "./chart.js";
import { icon } from "./icons.js";
import { make } from "./format.js";

const NEAR = 26; // pixels: a mark is as wide
const KINDS = { checkpoint: "Checkpoint", evaluation: "Evaluation", push: "New weights for the sampler" };
const SHAPES = { checkpoint: () => icon("archive"), evaluation: () => icon("flask-conical"), push: () => icon("upload") };

/** Items by place, those nearer than `near` to the first of their group together: [{ left, items }]. */
export function grouped(items, near) {
  const groups = [];
  for (const item of [...items].sort((a, b) => a.left - b.left)) {
    const last = groups.at(-1);
    if (last && item.left - last.left < near) last.items.push(item);
    else groups.push({ left: item.left, items: [item] });
  }
  return groups;
}

/** "3 checkpoints, 1 evaluation at steps 10 to 30" */
export function told(items) {
  const counts = new Map();
  for (const { kind } of items) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const steps = items.map(({ step }) => step);
  const [low, high] = [Math.min(...steps), Math.max(...steps)];
  const words = [...counts].map(([kind, n]) => (items.length === 1 ? KINDS[kind] : `${n} × ${KINDS[kind].toLowerCase()}`)).join(", ");
  return low === high ? `${words}, step ${low}` : `${words}, steps ${low} to ${high}`;
}

export class Marks {
  /** `items()`: [{ step, kind, href }]; `ends()`: the first and the last step of the run; `placing()`: what gives the place of a step on
   *  the axis of the board, or null. */
  constructor(place, board, { items, ends, placing }) {
    Object.assign(this, { place, board, items, ends, placing, drawn: "", known: [], frame: 0 });
    new ResizeObserver(() => this.draw()).observe(place);
  }

  /** The place of a step between the ends of the axis, from 0 to 1; null if it lies outside. */
  shareOf(step) {
    const at = this.placing();
    const zoom = this.board.zoom;
    const [low, high] = this.ends();
    if (!at || !(high > low)) return null;
    const [from, to] = zoom ? [zoom.min, zoom.max] : [at(low), at(high)];
    const share = (at(step) - from) / (to - from);
    return share >= 0 && share <= 1 ? share : null;
  }

  /** Looks again for what has happened, at most once in a frame. */
  refresh() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.known = this.items();
      this.draw();
    });
  }

  draw() {
    const width = this.place.clientWidth - NEAR;
    const items = this.known.map((item) => ({ ...item, share: this.shareOf(item.step) })).filter(({ share }) => share !== null);
    const groups = grouped(items.map((item) => ({ ...item, left: item.share * width })), NEAR);
    const shape = JSON.stringify(groups);
    if (shape === this.drawn || width <= 0) return;
    this.drawn = shape;
    this.place.replaceChildren(...groups.map((group) => this.mark(group)));
  }

  mark({ left, items }) {
    const words = told(items);
    const kinds = [...new Set(items.map(({ kind }) => kind))];
    const one = items.length === 1;
    const mark = one ? Object.assign(make("a", "chart-mark"), { href: items[0].href }) : Object.assign(make("button", "chart-mark"), { type: "button" });
    mark.append(...(kinds.length === 1 ? [SHAPES[kinds[0]]()] : []), ...(one ? [] : [make("span", "num", String(items.length))]));
    mark.title = one ? words : `${words}: zoom in`;
    mark.setAttribute("aria-label", mark.title);
    mark.style.insetInlineStart = `${left}px`;
    if (!one) mark.addEventListener("click", () => this.zoomTo(items));
    return make("li", "", mark);
  }

  zoomTo(items) {
    const at = this.placing();
    const steps = items.map(({ step }) => step);
    this.board.set({ zoom: { min: at(Math.min(...steps) - 1), max: at(Math.max(...steps) + 1) } });
  }

  /** A tick on the axis of a chart for each. */
  tick(u) {
    const [at, dots, pen] = [this.placing(), devicePixelRatio, u.ctx];
    if (!at) return;
    pen.save();
    pen.fillStyle = colour("--text-3");
    for (const { step } of this.known) {
      const x = at(step);
      if (x < u.scales.x.min || x > u.scales.x.max) continue;
      pen.fillRect(Math.round(u.valToPos(x, "x", true)), u.bbox.top + u.bbox.height - 5 * dots, dots, 5 * dots);
    }
    pen.restore();
  }
}
