// The sheet of keys, where a person can also change them for this project.
import { show } from "../dialogs.js";
import { json } from "../http.js";
import { toast } from "../toast.js";
import { el } from "./dom.js";
import { nameOf, shown } from "./keymap.js";

const NAMES = { task: "This task", frame: "Everywhere" };

export class KeySheet {
  constructor(dialog, keymap, project) {
    Object.assign(this, { dialog, keymap, project });
    this.list = dialog.querySelector("[data-list]");
    this.problem = dialog.querySelector("[data-problem]");
    dialog.querySelector("[data-reset]").addEventListener("click", () => this.save({}));
    dialog.addEventListener("close", () => dialog.open || this.stop()); // the browser reports it late: it may be open again
  }

  open() {
    this.stop();
    this.problem.textContent = "";
    this.draw();
    this.opening = show(this.dialog);
  }

  draw() {
    const clashes = this.keymap.clashes();
    const groups = [...this.keymap.groups].reverse().filter(([, entries]) => entries.length);
    this.list.replaceChildren(
      ...groups.map(([group, entries]) =>
        el("section", {}, el("h3", {}, NAMES[group] ?? group), el("dl.work-keys-rows", {}, ...entries.flatMap((entry) => this.row(entry, clashes)))),
      ),
    );
  }

  row(entry, clashes) {
    const key = this.keymap.keyOf(entry.action);
    const button = el("button.btn.small", {
      type: "button",
      ariaLabel: `${entry.label}: ${key ? shown(key) : "no key"}. Change`,
      onclick: () => this.listen(entry, button),
    }, el("kbd", {}, key ? shown(key) : "–"));
    const words = el("dd", {}, entry.label);
    if (clashes[entry.action]) words.append(el("span.warn.tiny", {}, ` same as “${clashes[entry.action]}”`));
    return [el("dt", {}, button), words];
  }

  listen(entry, button) {
    this.stop();
    button.firstChild.textContent = "press a key";
    this.stop = () => {
      document.removeEventListener("keydown", press, true);
      this.stop = () => {};
    };
    const press = (event) => {
      if (event.key === "Tab") return this.stop(), this.draw();
      const key = nameOf(event);
      event.preventDefault();
      event.stopPropagation();
      if (!key && event.key !== "Escape") return; // a modifier that is being pressed, or a key that is not ours
      this.stop();
      if (event.key === "Escape") return this.redraw(entry);
      this.set(entry, key);
    };
    document.addEventListener("keydown", press, true);
  }

  stop() {}

  async set(entry, key) {
    const other = this.keymap.entries().find((each) => each !== entry && this.keymap.keyOf(each.action) === key);
    if (other) {
      this.problem.textContent = `${shown(key)} is “${other.label}” already. Give that one another key first.`;
      return this.redraw(entry);
    }
    const own = { ...this.keymap.own, [entry.action]: key };
    if (key === (this.keymap.project[entry.action] ?? entry.key)) delete own[entry.action];
    await this.save(own);
    this.redraw(entry);
  }

  /** A person who changes keys without a mouse keeps the focus. */
  redraw(entry) {
    this.draw();
    this.list.querySelector(`[aria-label^="${CSS.escape(entry.label)}"]`)?.focus();
  }

  async save(own) {
    this.problem.textContent = "";
    const { opening } = this;
    try {
      const told = await json(`/api/v1/projects/${this.project}/keys`, { method: "PATCH", body: { keys: own } });
      this.keymap.own = told.keys;
      this.keymap.paint();
    } catch (error) {
      const why = error.fields?.[0]?.message ?? error.message;
      if (opening.lasts) this.problem.textContent = why;
      else toast(`The keys were not changed: ${why}`, { tone: "bad", id: error.id });
    }
    this.draw();
  }
}
