// The tasks that this person has: the current one, and the next one, which is loaded before it is needed.
import { json } from "../http.js";
import { warm } from "./text.js";

export const HOLD = 2;
/** Whether the person has not answered the task. A task whose answer is open again is done, so it is not among the tasks that are left. */
const unanswered = (item) => !item.submitted_at;
const halts = (reason) => Boolean(reason) && reason !== "none_left";

export class Tasks {
  /** `leaving(id)`: whether a task was submitted or skipped here and is being sent. */
  constructor({ project, leaving, changed }) {
    Object.assign(this, { project, leaving, changed, held: [], known: false, done: 0, left: null, reason: "", state: "", guidelines: 0, dropped: 0 });
  }

  async claim() {
    const told = await json(`/api/v1/projects/${this.project}/claim`, { body: { hold: HOLD } });
    this.take(told, { counted: true });
    return told;
  }

  /** Forgets tasks that were submitted, skipped or lost elsewhere, except `kept`. Without a network, everything stays. */
  async refresh(kept = null) {
    const { dropped } = this;
    const told = await json(`/api/v1/projects/${this.project}/claim`, { body: { hold: HOLD } }).catch(() => null);
    if (!told || this.dropped !== dropped) return; // the answer is older than what was submitted meanwhile
    const ours = new Set([kept, ...told.items.map((item) => item.id)]);
    // a paused project lists none, although begun ones can be finished
    if (!halts(told.reason)) this.held = this.held.filter((item) => ours.has(item.id));
    this.take(told, { counted: true });
  }

  /** Takes the person's tasks from the server. Known tasks keep their object, because one of them is on the screen. A claim has `counted` all
   * tasks that are left. The answer to a submission counts only the last few, so between two claims each task that comes is subtracted. */
  take({ items, left, done, state, reason, guidelines }, { counted = false } = {}) {
    const { halted, left: before } = this;
    Object.assign(this, { left, done, state, reason, guidelines: guidelines ?? 0, known: true });
    const fresh = items.filter((item) => !this.leaving(item.id) && !this.held.some((held) => held.id === item.id));
    const rest = counted || halted || this.halted || before === null ? null : before - fresh.filter(unanswered).length;
    if (rest !== null && rest >= 0) this.left = Math.min(left ?? rest, rest);
    for (const item of fresh) {
      this.held.push(item);
      warm([...item.view.prompt.map((message) => message.content), ...item.view.responses.map((response) => response.text)], (item.view.criteria ?? []).map(({ text }) => text));
    }
    this.changed();
    if (rest < 0 || (halted && !counted && !this.halted)) this.refresh(); // tasks came that nobody had counted
  }

  /** Whether the person or the project is paused; the number of remaining tasks then means nothing. */
  get halted() {
    return halts(this.reason);
  }

  /** The number of tasks that the person has not answered, with those in hand; null for many. */
  get unanswered() {
    return this.left === null ? null : this.left + this.held.filter(unanswered).length;
  }

  /** Removes a task that was submitted or skipped. */
  drop(id) {
    this.held = this.held.filter((item) => item.id !== id);
    this.dropped += 1;
    this.changed();
  }

  /** Puts a task back, as the first one. */
  put(item) {
    this.held = [item, ...this.held.filter((each) => each.id !== item.id)];
  }

  /** The neighbour of `id`: the next one for 1, the previous one for -1; undefined at the ends. */
  beside(id, by) {
    return this.held[this.held.findIndex((item) => item.id === id) + by];
  }
}
