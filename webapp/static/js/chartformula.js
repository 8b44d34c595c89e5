// The value of an expression of a chart at one step. The server parses it (webapp/experiments/charts/formulas.py) to steps for a
// stack machine, `program`, and computes it for stored points; this does the same for points that come while somebody looks. No text is run.
import { Curve, lowerBound } from "./series.js";

const ONE = { negative: (x) => -x, abs: Math.abs, log: Math.log, log10: Math.log10, exp: Math.exp, sqrt: Math.sqrt };
const TWO = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b };
const FUNCTIONS = ["abs", "clip", "exp", "log", "log10", "max", "min", "sqrt", "total"];
const MANY = { min: (values) => Math.min(...values), max: (values) => Math.max(...values), clip: ([x, low, high]) => (low <= high ? Math.min(Math.max(x, low), high) : NaN) };
const PLAIN = /^[\p{L}_][\p{L}\p{N}_]*(?:[./:@]+[\p{L}\p{N}_]+)*$/u;
const OFFERED = 12; // keys that completion shows at once

/** Once a value is not finite, no later step makes a number of it: `1 / (a / 0)` is no 0. */
const held = (value) => (Number.isFinite(value) ? value : NaN);

/** The value; null if it is not a number, such as after a division by 0; undefined if `read(key)` lacks a metric. `totals` are the sums
 *  that each `total` of the program has come to, by its place; what this step adds is added to them. */
export function computed(program, read, totals = {}) {
  const stack = [];
  for (const [place, [name, given]] of program.entries()) {
    if (name === "key") {
      const value = read(given);
      if (!Number.isFinite(value)) return undefined;
      stack.push(value);
    } else if (name === "number") stack.push(given);
    else if (ONE[name]) stack.push(held(ONE[name](stack.pop())));
    else if (TWO[name]) stack.push(held(TWO[name](...stack.splice(-2))));
    else if (name === "total") {
      const value = stack.pop();
      if (Number.isFinite(value)) totals[place] = (totals[place] ?? 0) + value;
      stack.push(Number.isFinite(value) ? totals[place] : NaN);
    } else stack.push(MANY[name](stack.splice(-given)));
  }
  return Number.isFinite(stack[0]) ? stack[0] : null;
}

/** The value of a curve at a step; undefined if it has none there. */
export function at(curve, step) {
  if (!curve) return undefined;
  const place = lowerBound(curve.steps, step);
  return curve.steps[place] === step ? curve.values[place] : undefined;
}

/** A line of a custom chart: its curve as the server computed it, which grows with the steps that come. */
export class ComputedLine {
  constructor({ expression, keys, program, missing, totals, last_step, steps, values, times }) {
    Object.assign(this, { expression, keys, program, missing, curve: new Curve(), sums: program.some(([name]) => name === "total"), stale: false });
    Object.assign(this, { before: totals, totals, step: last_step });
    steps.forEach((step, i) => this.curve.set(step, values[i], times[i]));
  }

  /** True if the step has a value of all its metrics now. Sums need the steps in their order: if one comes again, `stale` says so. */
  apply(step, read, time) {
    if (this.sums && step <= this.step && step !== this.added) {
      this.stale = true;
      return false;
    }
    const totals = { ...(step === this.added ? this.before : this.totals) };
    const value = computed(this.program, read, totals);
    if (value === undefined) return false;
    if (step !== this.added) Object.assign(this, { before: this.totals, added: step, step: Math.max(step, this.step ?? step) });
    this.totals = totals;
    this.curve.set(step, value, time);
    this.missing = [];
    return true;
  }
}

/** As an expression must name the key. */
export const named = (key) => (PLAIN.test(key) && !FUNCTIONS.includes(key) ? key : `"${key}"`);

/** The continuations at the cursor: { text, hint, start, end } for keys that have what was typed. `titled(key)` is the hint. */
export function suggestions(keys, titled, text, cursor) {
  const before = text.slice(0, cursor);
  const quoted = before.split('"').length % 2 === 0;
  const [typed] = quoted ? [before.slice(before.lastIndexOf('"'))] : before.match(/[\p{L}_][\p{L}\p{N}_./:@]*$/u) ?? [""];
  if (!typed && !/(^|[-+*/(,])\s*$/.test(before)) return [];
  const start = cursor - typed.length;
  const rest = text.slice(cursor).match(quoted ? /^[^"]*"?/ : /^[\p{L}\p{N}_./:@]*/u)[0];
  const word = typed.replace('"', "").toLowerCase();
  const found = keys.filter((key) => key.toLowerCase().includes(word)).sort((a, b) => b.toLowerCase().startsWith(word) - a.toLowerCase().startsWith(word));
  return found.slice(0, OFFERED).map((key) => ({ text: named(key), hint: titled(key), start, end: cursor + rest.length }));
}
