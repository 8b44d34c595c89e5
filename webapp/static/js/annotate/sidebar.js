// Guidelines and progress beside the task. The browser remembers whether they are open. A page opens with the guidelines until a person has
// submitted their first task of a project, or has closed them.
import { json } from "../http.js";
import { renderMath } from "../math.js";
import { preview } from "./text.js";
import { duration } from "../times.js";
import { el, recall, remember } from "./dom.js";

export class Sidebar {
  /** `reopen(id)` opens a submission again; `signedOut()` says that the session has ended. `unread`: nothing was submitted yet, and there are guidelines. */
  constructor({ user, project, counted, unread, reopen, signedOut }) {
    Object.assign(this, { project, counted, reopen, signedOut, read: `read:${user}:${project}` });
    this.side = document.getElementById("work-side");
    this.sections = { guidelines: document.getElementById("work-guidelines"), progress: document.getElementById("work-progress") };
    this.number = Number(this.sections.guidelines.querySelector("[data-number]")?.dataset.number ?? 0);
    this.session = new Map(); // id of an assignment that was submitted on this page -> seconds spent on it
    renderMath(this.sections.guidelines);
    const narrow = matchMedia("(max-width: 52rem)").matches; // on a narrow screen it would cover the task
    for (const name of Object.keys(this.sections)) this.set(name, !narrow && recall(`side-${name}`, false));
    this.unread = unread && !recall(this.read, false);
    if (this.unread && !narrow) this.open("guidelines");
  }

  open(name) {
    this.set(name, true);
    if (name === "guidelines") this.unread = false;
  }

  toggle(name) {
    const open = this.sections[name].hidden;
    this.set(name, open);
    remember(`side-${name}`, open);
    if (name === "guidelines") {
      this.unread = false;
      if (!open) remember(this.read, true);
    }
    if (open && name === "progress") this.refresh();
  }

  set(name, open) {
    this.sections[name].hidden = !open;
    this.side.hidden = Object.values(this.sections).every((section) => section.hidden);
    for (const button of document.querySelectorAll(`[data-do="${name}"][aria-expanded]`)) button.setAttribute("aria-expanded", String(open));
  }

  /** Fetches the guidelines if there are newer ones than the page shows. Resolves to whether they changed. */
  async guidelinesAre(number) {
    if (!number || number <= this.number) return false;
    const response = await fetch(`/projects/${this.project}/work/guidelines`, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (response?.status === 401) this.signedOut();
    if (!response?.ok) return false; // the next reply of the server tries again
    const text = await response.text();
    if (number <= this.number) return false; // another call has brought them meanwhile
    this.number = number;
    const body = this.sections.guidelines.querySelector(".work-panel-body");
    body.innerHTML = text; // a fragment of our own server, which has passed its allow-list
    renderMath(body);
    this.sections.guidelines.querySelector("[data-guidelines-number]").textContent = `v${number}`;
    return true;
  }

  counts({ done, left, known, halted }) {
    Object.assign(this, { done, left, known: known && !halted });
    const words = halted ? `${done} done` : `${done} done · ${this.leftWords} left`;
    document.getElementById("work-count").textContent = known ? words : "";
    this.draw();
  }

  /** The number of tasks that are left, in words. The server counts at most `counted`. */
  get leftWords() {
    return this.left === null ? `${this.counted.toLocaleString("en")}+` : this.left.toLocaleString("en");
  }

  /** An answer that is opened again and submitted again stays one answer. */
  submitted(id, seconds) {
    this.session.set(id, seconds);
  }

  /** The answer does not stand: the server has refused it, or its task was skipped after all. */
  withdrawn(id) {
    this.session.delete(id);
  }

  /** The server has the last submission, so the list is longer. */
  delivered() {
    if (!this.sections.progress.hidden) this.refresh();
  }

  async refresh() {
    try {
      this.mine = (await json(`/api/v1/projects/${this.project}/mine`)).items;
    } catch {
      this.mine ??= []; // offline: the last list stays
    }
    this.draw();
  }

  draw() {
    if (this.sections.progress.hidden) return;
    const total = this.left === null || !this.known ? null : this.done + this.left;
    const { size } = this.session;
    const pace = size ? duration([...this.session.values()].reduce((sum, seconds) => sum + seconds, 0) / size) : "–";
    const facts = [["Done", String(this.done ?? 0)], ["Left for you", this.known ? this.leftWords : "–"], ["In this session",
    String(size)], ["Time per task", pace]];
    const list = (this.mine ?? []).map((item) => this.entry(item));
    const children = [
      total ? el("progress.progress", { max: total, value: this.done, ariaLabel: "Tasks done" }) : null,
      el("dl.facts", {}, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd.num", {}, value)])),
      el("h3", {}, "Last submissions"),
      list.length ? el("ul.work-mine", {}, ...list) : el("p.muted.small", {}, "You can open your submitted answers again here."),
    ];
    this.sections.progress.querySelector("[data-progress]").replaceChildren(...children.filter(Boolean));
    if (this.mine === undefined) this.refresh();
  }

  entry(item) {
    const when = item.submitted_at ? el("time", { dateTime: item.submitted_at, data: { ago: "" } }) : null;
    const words = el("div", {}, preview(el("p.truncate.small"), item.excerpt || "A task"), el("p.tiny.muted", {}, item.state === "skipped" ? "Skipped " : "", when ?? ""));
    const again = item.state === "submitted" ? el("button.btn.small", { type: "button", onclick: () => this.reopen(item.id) }, "Reopen") : null;
    return el("li", {}, words, again);
  }
}
