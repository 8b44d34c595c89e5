// Horizontal axes beside step and time: what the run had sampled or learned up to a step, such as tokens. The server sums every
// stored point; steps that come are added here.
import { ComputedLine, at } from "./chartformula.js";
import { json } from "./http.js";
import { lowerBound } from "./series.js";
import { toast } from "./toast.js";

/** The value of a rising curve at any step: between two of its points by a straight line, and 0 before the first. */
export function reached({ steps, values }, step) {
  const place = lowerBound(steps, step);
  if (steps[place] === step) return values[place];
  if (place === 0) return 0;
  if (place === steps.length) return values.at(-1);
  const share = (step - steps[place - 1]) / (steps[place] - steps[place - 1]);
  return values[place - 1] + share * (values[place] - values[place - 1]);
}

export class Measures {
  /** `axes`: [{ name, expression }]. The board gets `measure`, `{ name, at(step) }`, once it is known. */
  constructor(board, api, store, axes) {
    Object.assign(this, { board, api, store, axes, lines: new Map(), asked: new Set() });
  }

  /** Makes the board's axis ready, if it is one of these. */
  async use(name) {
    const axis = this.axes.find((each) => each.name === name);
    if (axis && !this.lines.has(name)) await this.load(axis);
    const line = this.lines.get(name);
    if (this.board.axis !== name) return;
    this.board.set({ measure: line?.curve.length ? { name, at: (step) => reached(line.curve, step) } : null });
  }

  async load({ name, expression }) {
    if (this.asked.has(name)) return;
    this.asked.add(name);
    try {
      const { lines } = await json(`${this.api}/computed?${new URLSearchParams({ expression, max_points: 2000 })}`);
      this.lines.set(name, new ComputedLine(lines[0]));
    } catch (error) {
      toast(`The axis could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
    }
    this.asked.delete(name);
  }

  /** Metrics of a step came, and are in the store. One that came before is summed again by the server. */
  apply(step, values, time = Date.now() / 1000) {
    for (const [name, line] of this.lines) {
      if (!line.keys.some((key) => key in values)) continue;
      line.apply(step, (key) => at(this.store.get(key), step), time);
      if (line.stale) this.again();
      else if (this.board.axis === name) this.use(name);
    }
  }

  again() {
    this.lines.clear();
    this.use(this.board.axis);
  }
}
