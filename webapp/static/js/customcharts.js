// Charts that people made of expressions over metrics: drawn from what the server computes of every stored point, and live.
import { Chart } from "./chart.js";
import { ComputedLine, at } from "./chartformula.js";
import { AUTOMATIC } from "./chartrange.js";
import { json } from "./http.js";
import { toast } from "./toast.js";

const complain = (error) => toast(error.message, { tone: "bad", id: error.id });
const idOf = (spec) => `custom-${spec.id}`;

export class CustomCharts {
  /** `put(id, chart)` shows a chart, `take(id)` removes it, `settle()` says that their order has changed; `edit(spec)` opens the form. */
  constructor(board, { api, store, specs, mayWrite, file, tools, put, take, settle, edit }) {
    Object.assign(this, { board, api, store, specs, mayWrite, file, tools, put, take, settle, edit });
    this.held = new Map(); // id -> { chart, lines, state }
  }

  show() {
    for (const spec of this.specs) this.add(spec);
  }

  /** The place of a chart among them, by its id on the page; -1: it is none of them. */
  placeOf(id) {
    return this.specs.findIndex((spec) => idOf(spec) === id);
  }

  add(spec) {
    const held = { lines: [], state: "new", missed: [] };
    held.chart = new Chart(this.board, {
      id: idOf(spec),
      title: spec.title,
      help: `Computed: ${spec.expressions.join("; ")}`,
      file: `${this.file}-${idOf(spec)}`,
      own: ownRange(spec),
      keep: this.mayWrite && ((ends) => this.keep(spec, ends)),
      wait: "Loading",
      tools: this.tools(idOf(spec), spec.title),
      actions: this.mayWrite ? this.actions(spec) : [],
      lines: () => held.lines.map((line, i) => ({ label: line.expression, curve: line.curve, colour: `--series-${(i % 8) + 1}`, gaps: true })),
      below: (foot) => (foot.textContent = lacking(held.lines)),
    });
    this.held.set(spec.id, held);
    held.chart.keys = [];
    this.put(idOf(spec), held.chart, [spec.title, ...spec.expressions]);
  }

  actions(spec) {
    return [
      ["Edit", () => this.edit(spec)],
      ["Move forward", () => this.move(spec, -1)],
      ["Move back", () => this.move(spec, 1)],
      ["Delete", () => this.remove(spec)],
    ];
  }

  /** Asks for those that somebody looks at. */
  ask() {
    for (const spec of this.specs) {
      const held = this.held.get(spec.id);
      if (held?.state === "new" && held.chart.visible) this.load(spec, held);
    }
  }

  /** All of them again, after a time without messages. */
  again() {
    for (const held of this.held.values()) held.state = "new";
    this.ask();
  }

  async load(spec, held) {
    held.state = "asked";
    try {
      const found = await json(`${this.api}/computed?${new URLSearchParams(spec.expressions.map((each) => ["expression", each]))}`);
      held.lines = found.lines.map((line) => new ComputedLine(line));
      held.state = "there";
      for (const [step, time] of held.missed.splice(0)) this.grow(held, step, time);
      held.chart.blank.textContent = lacking(held.lines) || "No step has a value of all its metrics yet.";
      this.board.touch(held.chart);
    } catch (error) {
      held.chart.blank.textContent = `This chart cannot be drawn: ${error.fields?.[0]?.message ?? error.message}`;
    }
  }

  /** Metrics of a step came, and are in the store. Metrics that come while a chart is asked for are added to the answer. */
  apply(step, values, time = Date.now() / 1000) {
    for (const held of this.held.values()) {
      if (held.state === "asked") held.missed.push([step, time]);
      else if (held.lines.some((line) => line.keys.some((key) => key in values))) this.grow(held, step, time);
    }
  }

  grow({ chart, lines }, step, time) {
    const read = (key) => at(this.store.get(key), step);
    if (lines.map((line) => line.apply(step, read, time)).some(Boolean)) this.board.touch(chart);
    if (lines.some((line) => line.stale)) this.again();
  }

  made(spec) {
    this.specs.push(spec);
    this.add(spec);
    this.settle();
    this.held.get(spec.id).chart.element.scrollIntoView({ block: "nearest" });
  }

  /** Saves the vertical range for everybody; whether that worked. */
  async keep({ id }, ends) {
    try {
      const { title, before } = await this.range(id, ends);
      toast(`Saved the range of “${title}” for everybody`, { tone: "good", action: { label: "Undo", run: () => this.range(id, before).catch(complain) } });
      return true;
    } catch (error) {
      complain(error);
      return false;
    }
  }

  /** Changes the range alone: the other fields that are sent are those of now, which somebody may have changed since the page read them. */
  async range(id, [lowest, highest]) {
    const was = (await json(`${this.api}/charts`)).items.find((each) => each.id === id);
    if (!was) throw new Error("This chart was deleted. Load the page again.");
    const { title, expressions } = was;
    const spec = await json(`${this.api}/charts/${id}`, { method: "PUT", body: { title, expressions, lowest, highest } });
    Object.assign(this.specs.find((each) => each.id === id), spec); // its menu has this very object
    const { chart } = this.held.get(id);
    chart.own = ownRange(spec);
    this.board.touch(chart);
    return { title, before: ownRange(was) ?? AUTOMATIC };
  }

  changed(spec) {
    const place = this.specs.findIndex((each) => each.id === spec.id);
    this.specs[place] = spec;
    this.drop(spec);
    this.add(spec);
    this.settle();
  }

  drop(spec) {
    this.take(idOf(spec));
    this.held.delete(spec.id);
  }

  async move(spec, by) {
    const from = this.specs.findIndex((each) => each.id === spec.id);
    const to = Math.min(Math.max(from + by, 0), this.specs.length - 1);
    if (to === from) return;
    try {
      await json(`${this.api}/charts/${spec.id}/place`, { method: "PUT", body: { place: to } });
      this.specs.splice(to, 0, ...this.specs.splice(from, 1));
      this.settle();
    } catch (error) {
      complain(error);
    }
  }

  async remove(spec) {
    try {
      await json(`${this.api}/charts/${spec.id}`, { method: "DELETE" });
    } catch (error) {
      return complain(error);
    }
    const place = this.specs.findIndex((each) => each.id === spec.id);
    this.specs.splice(place, 1);
    this.drop(spec);
    this.settle();
    toast(`Deleted the chart “${spec.title}”`, { tone: "good", action: { label: "Undo", run: () => this.restore(spec, place) } });
  }

  async restore(spec, place) {
    try {
      const back = await json(`${this.api}/charts/${spec.id}/restore`, { method: "POST" });
      this.specs.splice(place, 0, back);
      this.add(back);
      this.settle();
    } catch (error) {
      complain(error);
    }
  }
}

/** The vertical range that a chart has for everybody; null: automatic. */
function ownRange({ lowest, highest }) {
  return lowest === null && highest === null ? null : [lowest, highest];
}

/** The metrics of which the run has no value; a slash without spaces may have been meant to divide. */
function lacking(lines) {
  const keys = [...new Set(lines.flatMap((line) => line.missing))];
  if (!keys.length) return "";
  const slash = keys.some((key) => key.includes("/")) ? " To divide, write spaces around the slash." : "";
  return `This run has no value of ${keys.join(", ")}.${slash}`;
}
