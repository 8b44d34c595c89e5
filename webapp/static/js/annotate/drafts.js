// The draft of one task. It is saved in this browser at every change and on the server a moment later, and it never overwrites another
// draft.
//
// A copy stays in the browser until the server has confirmed exactly this content. Each page writes its own copy, so two tabs cannot
// overwrite each other. The next page that opens the task finds the copies that were left.
import { json } from "../http.js";
import { copyOf, recall, remember, remembered, same } from "./dom.js";

const QUIET_MS = 1500;
const LONGEST_MS = 8000; // the draft is saved even if somebody types without a pause
const RETRY_MS = [1000, 2000, 4000, 8000, 15000, 30000];
const PAGE = Math.random().toString(36).slice(2, 10);
const KEEPALIVE_LIMIT = 60_000; // browsers send at most 64 kB after a page is closed

const nameFor = (user, id) => `draft:${user}:${id}:`;
const begunFor = (user, id) => `begun:${user}:${id}`; // the number of the guidelines, until the answer is submitted

/** The newest copy of this task that an earlier page left and the server does not have, or null. */
export function leftover(user, assignment) {
  const copies = remembered(nameFor(user, assignment.id)).sort(([, a], [, b]) => b.at - a.at);
  for (const [name, copy] of copies) if (same(copy.content, assignment.draft)) remember(name, null);
  return copies.find(([, copy]) => !same(copy.content, assignment.draft))?.[1] ?? null;
}

export function forgetCopies(user, id) {
  for (const [name] of remembered(nameFor(user, id))) remember(name, null);
}

/** Forgets the task, because it was submitted or skipped. */
export function forget(user, id) {
  forgetCopies(user, id);
  remember(begunFor(user, id), null);
}

/** Keeps content that could not be submitted, for the next page that opens the task. */
export function keep(user, id, content, revision, seconds) {
  remember(nameFor(user, id) + PAGE, { content, revision, seconds, at: Date.now() });
}

export class Draft {
  /** `tell(state, details)`: saved, saving, offline, conflict, refused, signed_out, gone. */
  constructor({ assignment, user, clock, tell }) {
    Object.assign(this, { id: assignment.id, user, clock, tell });
    this.revision = assignment.draft_revision;
    this.content = copyOf(assignment.draft);
    this.guidelines = recall(begunFor(user, assignment.id), 0); // the number of those under which it was begun, also on an earlier page
    this.dirty = false;
    this.saving = null;
    this.conflict = null;
    this.failures = 0;
    this.closed = false;
  }

  change(content) {
    if (this.closed) return;
    this.content = copyOf(content);
    this.dirty = true;
    this.since ??= Date.now();
    const unkept = !this.store();
    if (this.conflict) return;
    if (!this.failures) this.tell("saving", { unkept });
    this.schedule(Date.now() - this.since > LONGEST_MS ? 0 : QUIET_MS);
  }

  store() {
    remember(begunFor(this.user, this.id), this.guidelines || null);
    this.unkept = !remember(nameFor(this.user, this.id) + PAGE, {
      content: this.content, revision: this.revision, seconds: this.clock.seconds, at: Date.now(),
    });
    return !this.unkept;
  }

  schedule(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), this.failures ? RETRY_MS[Math.min(this.failures, RETRY_MS.length) - 1] : wait);
  }

  /** Saves now, if something is not saved yet. Resolves to whether the server has everything. */
  async flush() {
    clearTimeout(this.timer);
    if (this.saving) await this.saving;
    if (!this.dirty || this.conflict || this.closed) return !this.dirty;
    this.saving = this.save();
    await this.saving;
    this.saving = null;
    if (this.dirty && !this.conflict && !this.stuck) this.schedule(this.failures ? 0 : QUIET_MS);
    return !this.dirty;
  }

  async save() {
    const sent = copyOf(this.content);
    this.tell("saving");
    this.stuck = "";
    try {
      const told = await json(`/api/v1/assignments/${this.id}/draft`, { method: "PUT", body: this.body(sent) });
      this.revision = told.revision;
      this.confirmed(sent);
    } catch (error) {
      this.failed(error, sent);
    }
  }

  body(content) {
    return { content, revision: this.revision, seconds: this.clock.seconds };
  }

  confirmed(sent) {
    this.failures = 0;
    this.since = null;
    this.dirty = !same(sent, this.content);
    if (this.dirty) {
      this.store();
      return;
    }
    remember(nameFor(this.user, this.id) + PAGE, null);
    if (!this.closed) this.tell("saved");
  }

  failed(error, sent) {
    const current = error.body?.current;
    if (error.code === "conflict" && current) {
      if (same(current.draft, sent)) {
        this.revision = current.revision; // it was ours: the answer to an earlier save was lost
        return this.confirmed(sent);
      }
      this.conflict = current;
      return this.tell("conflict", { current });
    }
    if ([0, 429].includes(error.status) || error.status >= 500) {
      this.failures += 1;
      return this.tell(error.status === 0 ? "offline" : "retrying", { error });
    }
    this.stuck = { 401: "signed_out", 403: "signed_out", 404: "gone", 409: "gone", 410: "gone" }[error.status] ?? "refused";
    this.tell(this.stuck, { error });
  }

  /** After a conflict, overwrites the other draft because the person chose this one. */
  async keepMine() {
    this.revision = this.conflict.revision;
    this.conflict = null;
    this.dirty = true;
    return this.flush();
  }

  takeTheirs() {
    const { draft, revision } = this.conflict;
    Object.assign(this, { conflict: null, revision, content: copyOf(draft), dirty: false });
    remember(nameFor(this.user, this.id) + PAGE, null);
    this.tell("saved", { at: null });
    return draft;
  }

  /** Whether the draft waits for the network or for its author to sign in, and not for other content. */
  get waits() {
    return this.failures > 0 || this.stuck === "signed_out";
  }

  /** Tries again now, because the network or the person is back. */
  retry() {
    if (!this.dirty || this.closed) return;
    this.failures = 0;
    this.flush();
  }

  /** The page is being closed: sends one last request that outlives it. The browser's copy stays until its content is confirmed. */
  leave() {
    if (!this.dirty || this.conflict || this.closed || this.saving) return;
    const body = this.body(this.content);
    if (JSON.stringify(body).length > KEEPALIVE_LIMIT) return;
    json(`/api/v1/assignments/${this.id}/draft`, { method: "PUT", body, keepalive: true })
      .then((told) => {
        this.revision = told.revision; // the browser showed the page again from its memory
        this.confirmed(body.content);
      })
      .catch(() => {});
  }

  /** Stops saving, because the task is being submitted or skipped, or was left. */
  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }
}

