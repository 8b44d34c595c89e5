// Decisions of a review that are not saved yet. They stay in this browser, for this reviewer and exactly these answers.
import { recall, remember, remembered, same } from "./dom.js";

const KEPT_MS = 30 * 24 * 3600 * 1000;

export class ReviewDraft {
  constructor({ user, project }) {
    this.prefix = `review:${user}:${project}:`;
    for (const [name, { at }] of remembered(this.prefix)) if (Date.now() - at > KEPT_MS) remember(name, null);
  }

  /** {row id: decision} of the task; {} if there is none, or if the answers have changed since. */
  of(task) {
    const found = recall(this.prefix + task.task);
    return found && same(found.answers, answers(task)) ? found.decisions : {};
  }

  /** Keeps the decisions that differ from those of the loaded task. Returns whether they survive a reload. */
  keep(task, decisions, began) {
    const changed = !same(decisions, began);
    return remember(this.prefix + task.task, changed ? { answers: answers(task), decisions, at: Date.now() } : null);
  }

  forget(task) {
    remember(this.prefix + task.task, null);
  }
}

const answers = (task) => task.people.map((person) => person.answer);
