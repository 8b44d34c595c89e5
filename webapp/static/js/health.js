// Above the charts: what each of the last steps spent its time on, and the newest numbers of speed, memory and processors. A step that is
// chosen from the strip is shown as a line of time (flame.js).
import { Flame, WORK } from "./flame.js";
import { make, makeSvg, number } from "./format.js";
import { json } from "./http.js";
import { POINTS } from "./latercurves.js";

const SHOWN = 120; // steps
const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]; // keys of a slider
const FACTS = [
  ["perf/step_s", "Time per step", (value) => `${number(value)} s`],
  ["perf/rollout_tokens_per_s", "Sampled", (value) => `${number(value)} tokens/s`],
  ["perf/train_tokens_per_s", "Trained", (value) => `${number(value)} tokens/s`],
  ["async/staleness", "Age of the weights", (value) => `${number(value)} steps`],
  ["async/utilisation", "Workers busy", (value) => number(value, true)],
  ["perf/queue", "Groups that wait", (value) => number(value)],
  ["perf/cores", "Processors kept busy", (value, newest) => `${value.toFixed(2)}${of(newest("perf/machine_cores"))}`],
  ["perf/memory_gib", "Memory", (value) => `${number(value)} GiB`],
  ["perf/gpu_busy", "GPUs busy", (value) => number(value, true)],
  ["perf/gpu_memory_gib", "Peak GPU memory", (value) => `${number(value)} GiB`],
  ["perf/disk_written", "Disks, written", rate],
  ["perf/network_received", "Network, received", rate],
];

/** " of 2"; empty for a run that did not tell how many there are. */
const of = (all) => (Number.isFinite(all) ? ` of ${number(all)}` : "");

/** MiB per second, in the unit in which people read it. */
function rate(mib) {
  if (mib >= 1) return `${number(mib)} MiB/s`;
  return mib * 1024 >= 1 ? `${number(mib * 1024)} KiB/s` : `${Math.round(mib * 1024 * 1024)} bytes/s`;
}

/** `steps`: Map from the step to its seconds by key. The last `SHOWN` of them, oldest first, each with its share by kind of work. */
export function shares(steps) {
  const last = [...steps.keys()].sort((a, b) => a - b).slice(-SHOWN);
  return last.map((step) => {
    const seconds = WORK.map(([key]) => steps.get(step)[key] ?? 0);
    const whole = seconds.reduce((sum, each) => sum + each, 0);
    return { step, whole, seconds, shares: seconds.map((each) => (whole ? each / whole : 0)) };
  });
}

export class Health {
  /** `store`: the curves of the page, which tell the newest values. `expected`: whether a step is still to come, so that room is kept. */
  constructor(place, api, store, expected) {
    Object.assign(this, { place, api, store, steps: new Map(), due: false });
    this.facts = make("dl", "health-facts");
    this.strip = makeSvg("svg", { class: "health-strip", preserveAspectRatio: "none", role: "img" });
    this.choice = this.chooser();
    this.flame = new Flame(make("section", "flame"), api, (step) => this.chosen(step));
    this.legend = make("ul", "health-legend small");
    this.blank = make("p", "small muted", "After the first step: what the time is spent on, and what the run uses of its machine.");
    this.place.replaceChildren(this.blank, this.facts);
    this.place.hidden = !expected;
  }

  /** Whether it shows values of the key. */
  reads(key) {
    return key === "perf/machine_cores" || [...WORK, ...FACTS].some(([each]) => each === key);
  }

  async load() {
    const last = this.store.get("perf/step_s")?.steps.at(-1);
    if (last === undefined) return;
    const held = WORK.filter(([key]) => this.store.get(key));
    await Promise.all(
      held.map(async ([key]) => {
        for (const { step, value } of await this.points(key, last)) this.put(step, { [key]: value });
      }),
    );
    this.draw();
  }

  /** All points of the last steps. The curve of a longer run leaves steps out, so these are asked for. */
  async points(key, last) {
    const after = Math.max(last - SHOWN, 0);
    const { steps, values } = this.store.get(key);
    if (last < POINTS) return steps.map((step, i) => ({ step, value: values[i] })).filter(({ step }) => step > after);
    return (await json(`${this.api}/metrics?${new URLSearchParams({ key, after_step: after })}`)).points;
  }

  /** One message of one step. */
  apply(step, values) {
    const known = WORK.some(([key]) => key in values);
    if (known) this.put(step, values);
    if (!known && !FACTS.some(([key]) => key in values)) return;
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.draw();
    });
  }

  put(step, values) {
    this.steps.set(step, { ...this.steps.get(step), ...Object.fromEntries(WORK.flatMap(([key]) => (Number.isFinite(values[key]) ? [[key, values[key]]] : []))) });
    if (this.steps.size > 2 * SHOWN) for (const old of [...this.steps.keys()].sort((a, b) => a - b).slice(0, SHOWN)) this.steps.delete(old);
  }

  /** The field by which the keyboard chooses a step; the pointer clicks on a column. */
  chooser() {
    const slider = Object.assign(make("input"), { type: "range", step: 1 });
    slider.setAttribute("aria-label", "Step whose time is shown");
    const show = () => this.flame.show(this.columns[slider.value].step);
    slider.addEventListener("input", show);
    // a key or a click that leaves the slider where it is makes no event of its own
    slider.addEventListener("keydown", ({ key }) => key === "Enter" && show());
    slider.addEventListener("keyup", ({ key }) => MOVES.includes(key) && show());
    slider.addEventListener("click", show);
    this.strip.addEventListener("click", (event) => {
      const { left, width } = this.strip.getBoundingClientRect();
      const at = Math.floor(((event.clientX - left) / width) * this.columns.length);
      this.flame.show(this.columns[Math.max(0, Math.min(this.columns.length - 1, at))].step);
    });
    this.slider = slider;
    return make("label", "health-choice small muted", "Look at one step: choose its column, or move this", slider);
  }

  chosen(step) {
    this.follows = step !== null && step === this.columns.at(-1).step;
    this.limit();
    this.mark();
  }

  /** The slider goes over the columns. If the newest step is shown, the next one follows it. */
  limit() {
    const last = this.columns.length - 1;
    if (this.follows && this.columns[last].step !== this.flame.step) return this.flame.show(this.columns[last].step);
    const at = this.columns.findIndex(({ step }) => step === this.flame.step);
    this.slider.max = last;
    this.slider.value = at < 0 ? last : at;
    this.slider.setAttribute("aria-valuetext", `Step ${number(this.columns[this.slider.value].step)}`);
  }

  mark() {
    [...this.strip.children].forEach((column, i) => column.classList.toggle("is-chosen", this.columns[i].step === this.flame.step));
  }

  draw() {
    const newest = (key) => this.store.get(key)?.values.at(-1);
    const facts = FACTS.map(([key, name, words]) => [name, newest(key), words]).filter(([, value]) => Number.isFinite(value));
    this.facts.replaceChildren(...facts.map(([name, value, words]) => make("div", "", make("dt", "", name), make("dd", "num", words(value, newest)))));
    const columns = shares(this.steps);
    if (!facts.length && !columns.length) return;
    this.place.hidden = false;
    this.blank.hidden = true;
    if (columns.length) this.paint(columns);
  }

  paint(columns) {
    if (!this.strip.isConnected) this.place.append(this.strip, this.choice, this.legend, this.flame.place); // an empty picture has no name
    this.columns = columns;
    this.limit();
    this.strip.setAttribute("viewBox", `0 0 ${columns.length} 1`);
    this.strip.replaceChildren(...columns.map((column, x) => bar(column, x)));
    this.mark();
    const whole = columns.reduce((sum, each) => sum + each.whole, 0);
    const parts = WORK.map(([, name], i) => [name, i, columns.reduce((sum, each) => sum + each.seconds[i], 0) / whole]).filter(([, , share]) => share > 0);
    this.legend.replaceChildren(
      make("li", "muted", columns.length === 1 ? `Step ${number(columns[0].step)}` : `Steps ${number(columns[0].step)} to ${number(columns.at(-1).step)}`),
      ...parts.map(([name, i, share]) => make("li", "", make("span", `health-swatch is-${i + 1}`), `${name} `, make("span", "num muted", number(share, true)))),
    );
    this.strip.setAttribute("aria-label", `Share of the time of the last ${columns.length} steps: ${parts.map(([name, , share]) => `${name} ${number(share, true)}`).join(", ")}`);
  }
}

/** A column of one step: its kinds of work upon each other. */
function bar({ step, whole, seconds, shares: parts }, x) {
  const title = `Step ${number(step)}, ${number(whole)} s: ${WORK.map(([, name], i) => (seconds[i] ? `${name} ${number(seconds[i])} s` : "")).filter(Boolean).join(", ")}`;
  let above = 0;
  const rects = parts.flatMap((share, i) => {
    if (!share) return [];
    above += share;
    return [makeSvg("rect", { class: `is-${i + 1}`, x, y: above - share, width: 1, height: share })];
  });
  return makeSvg("g", {}, makeSvg("title", {}, title), ...rects);
}
