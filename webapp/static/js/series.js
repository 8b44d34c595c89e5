// One metric of one run in memory. If there are more than LIMIT points, each bucket of neighbours keeps only its lowest and its
// highest, so that no spike is lost and a page that is open for hours does not grow.

export const LIMIT = 2000;

export class Curve {
  constructor() {
    this.steps = [];
    this.values = []; // null where there is a gap
    this.times = []; // seconds since 1970, or null if the server did not send it
  }

  get length() {
    return this.steps.length;
  }

  /** Sets the value at `step`. If a step comes again (a resend, a resumed run), it replaces the old one. */
  set(step, value, time = null) {
    const last = this.steps.length - 1;
    if (last < 0 || step > this.steps[last]) {
      this.steps.push(step);
      this.values.push(value);
      this.times.push(time);
      if (this.steps.length > LIMIT) this.thin();
      return;
    }
    const at = lowerBound(this.steps, step);
    if (this.steps[at] === step) {
      this.values[at] = value;
      if (time !== null) this.times[at] = time;
    } else {
      this.steps.splice(at, 0, step);
      this.values.splice(at, 0, value);
      this.times.splice(at, 0, time);
      if (this.steps.length > LIMIT) this.thin();
    }
  }

  /** Reduces the points to half of LIMIT: the lowest and the highest of every bucket of neighbours, and the first and the last point. */
  thin() {
    const n = this.steps.length;
    const buckets = LIMIT / 4;
    const keep = new Set([0, n - 1]);
    for (let b = 0; b < buckets; b++) {
      const from = Math.floor((b * n) / buckets);
      const to = Math.floor(((b + 1) * n) / buckets);
      let low = -1;
      let high = -1;
      for (let i = from; i < to; i++) {
        if (this.values[i] === null) {
          if (i > 0 && this.values[i - 1] !== null) keep.add(i); // where a gap begins
          continue;
        }
        if (low < 0 || this.values[i] < this.values[low]) low = i;
        if (high < 0 || this.values[i] > this.values[high]) high = i;
      }
      if (low >= 0) keep.add(low).add(high);
    }
    const kept = [...keep].sort((a, b) => a - b);
    this.steps = kept.map((i) => this.steps[i]);
    this.values = kept.map((i) => this.values[i]);
    this.times = kept.map((i) => this.times[i]);
  }

  /** The first, last, lowest and highest value, or null. */
  summary() {
    if (!this.length) return null;
    let low = Infinity;
    let high = -Infinity;
    for (const value of this.values) {
      if (value === null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return { first: this.values[0], last: this.values.at(-1), low, high, n: this.length, step: this.steps.at(-1) };
  }
}

/** All metrics of one run. `onchange(keys)` is called with the keys that moved. */
export class Store {
  constructor() {
    this.curves = new Map();
    this.listeners = new Set();
  }

  keys() {
    return [...this.curves.keys()].sort();
  }

  get(key) {
    return this.curves.get(key);
  }

  listen(listener) {
    this.listeners.add(listener);
  }

  /** Adds the answer of /curves. It replaces nothing newer, because points are stored by step. */
  load(curves) {
    for (const [key, curve] of Object.entries(curves)) {
      const target = this.curve(key);
      curve.steps.forEach((step, i) => target.set(step, curve.values[i], curve.times?.[i] ?? null));
    }
    this.tell(Object.keys(curves));
  }

  /** Notes keys whose curves come later. */
  expect(keys) {
    for (const key of keys) this.curve(key);
    this.tell(keys);
  }

  /** Adds the websocket message of one step. */
  apply(step, values, time = Date.now() / 1000) {
    for (const [key, value] of Object.entries(values)) this.curve(key).set(step, value, time);
    this.tell(Object.keys(values));
  }

  curve(key) {
    if (!this.curves.has(key)) this.curves.set(key, new Curve());
    return this.curves.get(key);
  }

  tell(keys) {
    for (const listener of this.listeners) listener(keys);
  }
}

export function lowerBound(sorted, x) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The sum of several curves, step by step. */
export function total(curves) {
  const sums = new Map(); // step -> [sum, time]
  for (const curve of curves) {
    curve.steps.forEach((step, i) => {
      const [sum, time] = sums.get(step) ?? [0, null];
      sums.set(step, [sum + curve.values[i], time ?? curve.times[i]]);
    });
  }
  const found = new Curve();
  for (const step of [...sums.keys()].sort((a, b) => a - b)) found.set(step, ...sums.get(step));
  return found;
}

/** The exponential moving average, corrected for the bias of its start. `weight` 0 returns the values unchanged. */
export function smooth(values, weight) {
  if (!weight) return values;
  let average = 0;
  let norm = 0;
  return values.map((value) => {
    if (value === null || value === undefined) return value;
    average = weight * average + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return average / norm;
  });
}

/** Several curves on one horizontal axis: `[xs, ys, ys, ...]`, `absent` if a curve has no point there. `axis` is "step", "time", or gives
 *  the place of a step. */
export function align(curves, axis, origin = 0, absent = null) {
  const at = (curve, i) => (typeof axis === "function" ? axis(curve.steps[i]) : axis === "time" ? (curve.times[i] === null ? null : curve.times[i] - origin) : curve.steps[i]);
  const all = new Set();
  for (const curve of curves) {
    for (let i = 0; i < curve.length; i++) {
      const x = at(curve, i);
      if (x !== null) all.add(x);
    }
  }
  const xs = [...all].sort((a, b) => a - b);
  const place = new Map(xs.map((x, i) => [x, i]));
  const columns = curves.map((curve) => {
    const ys = new Array(xs.length).fill(absent);
    for (let i = 0; i < curve.length; i++) {
      const x = at(curve, i);
      if (x !== null) ys[place.get(x)] = curve.values[i];
    }
    return ys;
  });
  return [xs, ...columns];
}
