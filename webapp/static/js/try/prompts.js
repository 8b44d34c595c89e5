// The prompt: written by the person, or one of a dataset.
import { el } from "../annotate/dom.js";
import { json } from "../http.js";

const AT_A_TIME = 50;
const part = (id) => document.getElementById(id);

export class Prompts {
  /** `changed()` is called when there is another prompt; `problem(words)` when one could not be fetched. */
  constructor({ datasets, changed, problem }) {
    Object.assign(this, { datasets, changed, problem, dataset: null, rows: [], next: null, at: -1, example: null, earlier: [] });
    this.prompt = part("try-prompt");
    this.system = part("try-system");
    this.select = part("try-dataset");
    this.steps = document.querySelector("[data-steps]");
    this.place = document.querySelector(".try-place");
    this.select.addEventListener("change", () => this.choose(this.select.value));
    for (const area of [this.prompt, this.system]) area.addEventListener("input", () => this.edited());
  }

  /** The request; `example` is null if the words are no longer the dataset's. Null if there are no words. */
  request() {
    const words = this.prompt.value;
    if (!words.trim()) return null;
    const system = this.system.value.trim() ? [{ role: "system", content: this.system.value }] : [];
    return { messages: [...system, ...this.earlier, { role: "user", content: words }], example: this.example, rubric: this.rubric && this.example !== null };
  }

  edited() {
    this.example = null;
  }

  async choose(id, at = 0) {
    this.dataset = this.datasets.find((each) => String(each.id) === String(id)) ?? null;
    this.select.value = this.dataset ? String(this.dataset.id) : "";
    Object.assign(this, { rows: [], next: null, at: -1, example: null });
    this.steps.hidden = !this.dataset;
    if (this.dataset) await this.go(at);
    else this.show({ prompt: [{ role: "user", content: "" }] });
    this.changed();
  }

  async step(by) {
    if (!this.dataset || this.busy) return false;
    const to = this.at + by;
    if (to < 0 || to >= this.dataset.examples) return false;
    return this.go(to);
  }

  async go(to) {
    this.busy = true;
    try {
      const address = `/api/v1/datasets/${this.dataset.id}/versions/${this.dataset.version}/examples`;
      while (to >= this.rows.length && (this.next !== null || !this.rows.length)) {
        const found = await json(`${address}?limit=${AT_A_TIME}${this.next ? `&cursor=${this.next}` : ""}`);
        this.rows.push(...found.items);
        this.next = found.next;
        if (!found.items.length) break;
      }
      const row = this.rows[Math.min(to, this.rows.length - 1)];
      if (!row) throw new Error("This dataset has no examples.");
      const { content } = await json(`/api/v1/examples/${row.id}`);
      Object.assign(this, { at: Math.min(to, this.rows.length - 1), example: row.id });
      this.show(content);
      this.place.textContent = `${this.at + 1} of ${this.dataset.examples.toLocaleString("en")}`;
      return true;
    } catch (error) {
      this.problem(`The prompt could not be fetched: ${error.message}`);
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** The system message and the last words of the user can be changed; the messages in between are shown above them. */
  show({ prompt, rubric }) {
    this.rubric = Boolean(rubric);
    const said = [...prompt];
    this.system.value = said[0]?.role === "system" ? said.shift().content : "";
    this.prompt.value = said.at(-1)?.role === "user" ? said.pop().content : "";
    this.earlier = said.filter(({ role }) => role !== "tool").map(({ role, content }) => ({ role, content }));
    const list = document.querySelector("[data-earlier]");
    list.hidden = !this.earlier.length;
    list.replaceChildren(...this.earlier.map(({ role, content }) => el("li.well", {}, el("span.label", {}, role), el("p.small.verbatim", { dir: "auto" }, content))));
  }
}
