// The phases of a run: a band for each on every chart, and a list of the phases that have begun and of those that are still to come.
// Their names are in the config; the trainer sends the number of each phase at its first step.
import { colour, faint } from "./chart.js";
import { make } from "./format.js";

/** The points of a curve that may be missing: its value as the number, at its step. */
const pointsOf = (curve) => (curve ? curve.steps.map((step, i) => ({ number: curve.values[i], step, time: curve.times[i] })) : []);

/** `planned`: [{ when, what, never }] in order; `never` says why a phase never begins. `curves()`: by step the numbers of the phases that
 *  have begun, and whether responses have a budget; each may be missing. */
export class Phases {
  constructor(place, planned, curves, over) {
    Object.assign(this, { place, planned, curves, over });
  }

  /** [{ number, step, time }] of the phases that have begun; 0 is the run before the first phase. */
  begun() {
    const found = pointsOf(this.curves()[0]);
    return this.planned.length && found[0]?.step !== 1 ? [{ number: 0, step: 1, time: null }, ...found] : found;
  }

  what(number) {
    return number ? (this.planned[number - 1]?.what ?? `phase ${number}`) : "as configured";
  }

  /** [{ number, from, to, shade }] on the axis of the board, between its ends; none while there is one phase alone. */
  spans(board, { min, max }) {
    const begun = this.begun();
    if (begun.length < 2) return [];
    const at = (phase) => Math.min(Math.max(this.placeOf(phase, board, min), min), max);
    const all = begun.map((phase, i) => ({ number: phase.number, from: at(phase), to: i + 1 < begun.length ? at(begun[i + 1]) : max, shade: phase.number % 2 ? 0.14 : 0.04 }));
    return all.filter(({ from, to }) => from < to);
  }

  placeOf(phase, board, otherwise) {
    const placing = board.placing();
    if (typeof placing === "function") return placing(phase.step - 1); // with what the step before had reached
    if (placing !== "time") return phase.step;
    return phase.time === null ? otherwise : phase.time - board.origin;
  }

  /** Draws bands behind the curves: every second one is filled, and each has its number at the top. */
  draw(u, board) {
    const spans = this.spans(board, u.scales.x);
    if (!spans.length) return;
    const place = (value) => Math.min(Math.max(u.valToPos(value, "x", true), u.bbox.left), u.bbox.left + u.bbox.width);
    const at = (phase) => place(this.placeOf(phase, board, u.scales.x.min));
    const pen = u.ctx;
    pen.save();
    pen.font = `${10 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
    pen.textBaseline = "top";
    for (const { number, from, to, shade } of spans) {
      const [left, right] = [place(from), place(to)];
      pen.fillStyle = faint("--text-3", shade);
      pen.fillRect(left, u.bbox.top, right - left, u.bbox.height);
      pen.fillStyle = colour("--text-3");
      if (right - left > 16 * devicePixelRatio) pen.fillText(String(number), left + 3 * devicePixelRatio, u.bbox.top + 2 * devicePixelRatio);
    }
    const budget = pointsOf(this.curves()[1]);
    budget.forEach((each, i) => {
      if (!each.number) return;
      pen.fillStyle = faint("--text-3", 0.6);
      const right = i + 1 < budget.length ? at(budget[i + 1]) : u.bbox.left + u.bbox.width;
      pen.fillRect(at(each), u.bbox.top, Math.max(right - at(each), 0), 2 * devicePixelRatio);
    });
    pen.restore();
  }

  /** The list over the charts. */
  list() {
    if (!this.planned.length) return;
    const steps = new Map(this.begun().map((phase) => [phase.number, phase.step]));
    const last = Math.max(0, ...steps.keys());
    const all = [{ what: this.what(0), when: "step 1" }, ...this.planned].map((phase, number) => ({ ...phase, number }));
    const rows = all.slice(this.planned[0].when === "step 1" ? 1 : 0).map(({ number, ...phase }) => {
      const waits = this.over() ? `never began: ${phase.when}; phase ${last} continued` : `not yet: ${phase.when}`;
      const words = steps.has(number) ? `from step ${steps.get(number)}` : phase.never || waits;
      const row = make("li", "", make("span", "phase-number num", String(number)), " ", make("span", "", phase.what), " ", make("span", "muted", words));
      row.classList.toggle("is-waiting", !steps.has(number));
      return row;
    });
    this.place.replaceChildren(...rows);
    this.place.hidden = false;
  }
}
