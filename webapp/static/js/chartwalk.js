// The cursor of a chart by keyboard: with the focus on the picture, the arrow keys move it from point to point, and a screen reader says
// the values there.
import { make } from "./format.js";

const LEAP = 10; // points, with Page Up and Page Down

export class Walk {
  constructor(chart) {
    this.chart = chart;
    this.x = null; // the place on the axis; its index changes if a live run thins its points
    this.element = make("div", "chart-walk");
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "slider");
    this.element.setAttribute("aria-label", `${chart.title}: values, with the arrow keys`);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("focus", () => this.show(this.places().at(-1)));
    this.element.addEventListener("blur", () => this.leave());
  }

  get active() {
    return this.x !== null && document.activeElement === this.element;
  }

  /** Places in view at which a line has a value. */
  places() {
    const { plot, data, shown } = this.chart;
    const { min, max } = plot.scales.x;
    return data[0].map((_, i) => i).filter((i) => data[0][i] >= min && data[0][i] <= max && shown.some((_, line) => Number.isFinite(data[1 + line][i])));
  }

  /** The index in `places` of the one that is nearest to the cursor. Without a cursor, it is the last. */
  nearest(places) {
    if (this.x === null) return places.length - 1;
    const far = (i) => Math.abs(this.chart.data[0][places[i]] - this.x);
    return places.reduce((best, _, i) => (far(i) < far(best) ? i : best), 0);
  }

  key(event) {
    if (event.key === "Escape" && this.x !== null) {
      event.preventDefault();
      return this.leave();
    }
    const places = this.places();
    const here = this.nearest(places);
    const to = { ArrowRight: here + 1, ArrowUp: here + 1, ArrowLeft: here - 1, ArrowDown: here - 1, PageUp: here + LEAP, PageDown: here - LEAP, Home: 0, End: places.length - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey || !places.length) return;
    event.preventDefault();
    this.show(places[Math.max(0, Math.min(places.length - 1, to))]);
  }

  show(at) {
    if (at === undefined) return;
    this.x = this.chart.data[0][at];
    this.point(at);
    this.tell();
  }

  point(at) {
    const { plot, data, shown } = this.chart;
    const line = shown.findIndex((_, i) => Number.isFinite(data[1 + i][at]));
    plot.setCursor({ left: plot.valToPos(data[0][at], "x"), top: plot.valToPos(data[1 + line][at], "y") }, true, true);
  }

  /** After the data has changed: the cursor stays at its place, or moves to the point that is now nearest to it. */
  follow() {
    const places = this.places();
    if (this.active && places.length) this.point(places[this.nearest(places)]);
    this.tell();
  }

  tell() {
    const places = this.places();
    const [first, last, now] = [places[0] ?? 0, places.at(-1) ?? 0, places[this.nearest(places)] ?? 0];
    const x = (i) => this.chart.data[0][i];
    for (const [name, value] of [["min", x(first)], ["max", x(last)], ["now", x(now)]]) this.element.setAttribute(`aria-value${name}`, value);
    this.element.setAttribute("aria-valuetext", this.chart.wordsAt(now));
  }

  leave() {
    this.x = null;
    this.chart.plot?.setCursor({ left: -10, top: -10 }, true, true);
  }
}
