// The tasks in hand: the one being worked on and the next one, which is there before it is needed.
import { json } from "../http.js";
import { warm } from "./text.js";

export const HOLD = 2;

export class Tasks {
  /** `leaving(id)`: whether a task is on its way out (submitted or skipped here). */
  constructor({ project, leaving, changed }) {
    Object.assign(this, { project, leaving, changed, held: [], known: false, done: 0, left: null, reason: "", state: "" });
  }

  async claim() {
    const told = await json(`/api/v1/projects/${this.project}/claim`, { body: { hold: HOLD } });
    this.take(told);
    return told;
  }

  /** What the server says is in hand. Tasks known already keep their object: one of them is on the screen. */
  take({ items, left, done, state, reason }) {
    Object.assign(this, { left, done, state, reason, known: true });
    for (const item of items) {
      if (this.leaving(item.id) || this.held.some((held) => held.id === item.id)) continue;
      this.held.push(item);
      warm([...item.view.prompt.map((message) => message.content), ...item.view.responses.map((response) => response.text)], (item.view.criteria ?? []).map(({ text }) => text));
    }
    this.changed();
  }

  /** Whether the person or the project is held up: how much is left says nothing then. */
  get halted() {
    return Boolean(this.reason) && this.reason !== "none_left";
  }

  /** Out of hand: submitted or skipped. */
  drop(id) {
    this.held = this.held.filter((item) => item.id !== id);
    this.changed();
  }

  /** In hand again, first in line. */
  put(item) {
    this.held = [item, ...this.held.filter((each) => each.id !== item.id)];
  }

  /** The one beside `id`: by 1 the next, by -1 the one before; undefined at the ends. */
  beside(id, by) {
    return this.held[this.held.findIndex((item) => item.id === id) + by];
  }
}
