// Sends two answers to the same prompt to people. A pair that is sent again stays one task.
import { el } from "../annotate/dom.js";
import { icon } from "../icons.js";
import { json } from "../http.js";
import { toast } from "../toast.js";

const NEW = "";

export class Pairs {
  constructor() {
    this.project = document.getElementById("try-project");
    this.name = document.getElementById("try-new-project");
    this.place = document.querySelector("[data-pairs]");
    this.said = document.querySelector("[data-sent]");
    this.sent = new Set();
    this.project.addEventListener("change", () => this.named());
    this.named();
  }

  named() {
    document.querySelector("[data-new]").hidden = this.project.value !== NEW;
    this.draw(this.columns ?? []);
  }

  draw(columns) {
    this.columns = columns;
    const found = [];
    columns.forEach((a, i) => columns.slice(i + 1).forEach((b, j) => found.push([a, b, i, i + 1 + j])));
    const ready = found.filter(([a, b]) => a.state === "done" && b.state === "done" && a.asked === b.asked && a.text.trim() && b.text.trim());
    this.place.replaceChildren(...(ready.length ? ready.map((pair) => this.button(pair)) : [el("p.small.muted", {}, "Two finished answers to the same prompt make a pair.")]));
  }

  button([a, b, i, j]) {
    const name = `${String.fromCharCode(65 + i)} and ${String.fromCharCode(65 + j)}`;
    const done = this.sent.has(this.mark(a, b));
    const send = (event) => this.send(event.currentTarget, a, b);
    return el("button.btn", { type: "button", disabled: done, onclick: send, data: { pair: "" } }, done ? icon("check") : icon("send"), done ? `${name} sent` : `Send ${name}`);
  }

  mark(a, b) {
    return JSON.stringify([this.project.value, a.asked.messages, a.model, a.text, b.model, b.text]);
  }

  /** The first pair that was not sent yet. */
  sendFirst() {
    this.place.querySelector("[data-pair]:not(:disabled)")?.click();
  }

  async send(button, a, b) {
    button.disabled = true;
    const side = ({ model, text, asked }) => ({ model, text: text.replaceAll("\0", "␀"), sampling: asked.sampling }); // databases cannot store a NUL
    const where = this.project.value === NEW ? { new_project: this.name.value.trim() } : { project: Number(this.project.value) };
    try {
      const told = await json("/api/v1/try/pairs", { body: { messages: a.asked.messages, a: side(a), b: side(b), example: a.asked.example, ...where } });
      this.keep(told);
      this.sent.add(this.mark(a, b));
      const count = `${told.tasks} ${told.tasks === 1 ? "task" : "tasks"}`;
      this.said.replaceChildren(told.made ? "Sent to " : "Was sent before: ", el("a", { href: told.url }, told.project_name), `, ${count}`);
    } catch (error) {
      const where = error.fields?.map(({ message }) => message).join("; ");
      toast(`The pair was not sent: ${where || error.message}`, { tone: "bad", id: error.id });
    }
    this.draw(this.columns);
  }

  /** Chooses a project that was just set up. */
  keep({ project, project_name: name }) {
    const value = String(project);
    if (![...this.project.options].some((each) => each.value === value)) this.project.prepend(el("option", { value }, name));
    this.project.value = value;
    document.querySelector("[data-new]").hidden = true;
  }
}
