// Sends submissions and skips to the server, in order. They wait in this browser while there is no network, and survive a closed
// tab: the next page of the project sends them. The server counts an identical repeat only once.
import { json } from "../http.js";
import { recall, remember, same } from "./dom.js";
import { forget, keep } from "./drafts.js";

const RETRY_MS = [1000, 2000, 4000, 8000, 15000, 30000];

export class Outbox {
  /** `done(entry, result)` is called after each, `failed(entry, error)` if the server refuses it, `changed()` on any change. */
  constructor({ user, project, done, failed, changed }) {
    Object.assign(this, { user, done, failed, changed, name: `outbox:${user}:${project}`, failures: 0, waiting: new Map() });
    addEventListener("online", () => this.retry());
  }

  get entries() {
    return recall(this.name, []);
  }

  has(id) {
    return this.entries.some((entry) => entry.id === id);
  }

  /** Whether something waits because there is no network. */
  get stalled() {
    return this.failures > 0 && this.entries.length > 0;
  }

  /** Whether it waits for the person to sign in. */
  get signedOut() {
    return this.stalled && this.refusal;
  }

  /** Queues and sends an entry. Resolves to the server's answer, or to null if it must wait for the network or was refused. */
  send(entry, draft = null) {
    this.unkept = !remember(this.name, [...this.entries.filter((each) => each.id !== entry.id), { ...entry, at: Date.now() }]);
    if (draft) this.draftOf(entry.id, draft);
    const answer = new Promise((resolve) => this.waiting.set(entry.id, resolve));
    this.changed();
    this.run();
    return answer;
  }

  draftOf(id, draft) {
    (this.drafts ??= new Map()).set(id, draft);
  }

  /** Takes back an entry that was not sent yet; null if it is gone or being sent. */
  recallEntry(id) {
    const entry = this.entries.find((each) => each.id === id);
    if (!entry || this.sending === id) return null;
    this.remove(id);
    return entry;
  }

  remove(id) {
    const rest = this.entries.filter((entry) => entry.id !== id);
    this.unkept = !remember(this.name, rest.length ? rest : null);
    this.drafts?.delete(id);
    this.changed();
  }

  settle(id, result) {
    this.waiting.get(id)?.(result);
    this.waiting.delete(id);
  }

  retry() {
    clearTimeout(this.timer);
    this.run();
  }

  /** Sends entries. Resolves when nothing is left, or nothing can be sent now. */
  run() {
    this.running ??= this.drain().finally(() => (this.running = null));
    return this.running;
  }

  async drain() {
    for (let entry = this.entries[0]; entry; entry = this.entries[0]) {
      this.sending = entry.id;
      try {
        const result = await this.post(entry);
        this.failures = 0;
        this.sending = null;
        this.remove(entry.id);
        forget(this.user, entry.id);
        this.settle(entry.id, result);
        this.done(entry, result);
      } catch (error) {
        this.sending = null;
        if (this.again(error)) return this.wait(error);
        keep(this.user, entry.id, entry.body.content ?? null, entry.body.revision ?? 0, entry.body.seconds ?? 0);
        if (!entry.body.content) forget(this.user, entry.id);
        this.remove(entry.id);
        this.settle(entry.id, null);
        this.failed(entry, error);
      }
    }
  }

  again(error) {
    return error.status === undefined || [0, 401, 403, 429].includes(error.status) || error.status >= 500;
  }

  wait(error) {
    this.failures += 1;
    this.refusal = [401, 403].includes(error.status);
    for (const id of [...this.waiting.keys()]) this.settle(id, null); // so that nobody has to wait
    this.changed();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), RETRY_MS[Math.min(this.failures, RETRY_MS.length) - 1]);
  }

  async post(entry) {
    const draft = this.drafts?.get(entry.id);
    if (draft?.saving) await draft.saving; // a save that is under way changes the revision
    const body = draft ? { ...entry.body, revision: draft.revision } : entry.body;
    const url = `/api/v1/assignments/${entry.id}/${entry.kind}`;
    try {
      return await json(url, { body });
    } catch (error) {
      const current = error.body?.current;
      const ours = entry.kind === "submit" && error.code === "conflict" && current && same(current.draft, body.content);
      if (!ours) throw error;
      return json(url, { body: { ...body, revision: current.revision } }); // our own save, whose answer was lost
    }
  }
}
