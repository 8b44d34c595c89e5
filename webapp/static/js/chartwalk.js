// The cursor of a chart by keyboard: with the focus on the picture, the arrow keys move it from point to point, and a screen reader says
// the values there.
import { make } from "./format.js";

const LEAP = 10; // points, with Page Up and Page Down

export class Walk {
  constructor(chart) {
    this.chart = chart;
    this.at = null; // the index of a place
    this.element = make("div", "chart-walk");
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "slider");
    this.element.setAttribute("aria-label", `${chart.title}: values, with the arrow keys`);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("focus", () => this.show(this.at ?? this.places().at(-1)));
    this.element.addEventListener("blur", () => this.leave());
  }

  get active() {
    return this.at !== null && document.activeElement === this.element;
  }

  /** Places in view at which a line has a value. */
  places() {
    const { plot, data, shown } = this.chart;
    const { min, max } = plot.scales.x;
    return data[0].map((_, i) => i).filter((i) => data[0][i] >= min && data[0][i] <= max && shown.some((_, line) => Number.isFinite(data[1 + line][i])));
  }

  key(event) {
    if (event.key === "Escape" && this.at !== null) {
      event.preventDefault();
      return this.leave();
    }
    const places = this.places();
    const here = this.at === null ? places.length - 1 : places.findLastIndex((place) => place <= this.at);
    const to = { ArrowRight: here + 1, ArrowUp: here + 1, ArrowLeft: here - 1, ArrowDown: here - 1, PageUp: here + LEAP, PageDown: here - LEAP, Home: 0, End: places.length - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey || !places.length) return;
    event.preventDefault();
    this.show(places[Math.max(0, Math.min(places.length - 1, to))]);
  }

  show(at) {
    if (at === undefined) return;
    this.at = at;
    const { plot, data, shown } = this.chart;
    const line = shown.findIndex((_, i) => Number.isFinite(data[1 + i][at]));
    plot.setCursor({ left: plot.valToPos(data[0][at], "x"), top: plot.valToPos(data[1 + line][at], "y") }, true, true);
    this.tell();
  }

  tell() {
    const places = this.places();
    const [first, last] = [places[0] ?? 0, places.at(-1) ?? 0];
    const x = (i) => this.chart.data[0][i];
    for (const [name, value] of [["min", x(first)], ["max", x(last)], ["now", x(this.at ?? last)]]) this.element.setAttribute(`aria-value${name}`, value);
    this.element.setAttribute("aria-valuetext", this.chart.wordsAt(this.at ?? last));
  }

  leave() {
    this.at = null;
    this.chart.plot?.setCursor({ left: -10, top: -10 }, true, true);
  }
}
