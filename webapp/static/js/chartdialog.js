// The form of a custom chart: a title, and an expression for each line, with completion of keys and errors at their place.
import { suggestions } from "./chartformula.js";
import { send, show } from "./dialogs.js";
import { icon } from "./icons.js";
import { json } from "./http.js";
import { make } from "./format.js";
import { queryBox } from "./querybox.js";

const MOST = 8; // lines of a chart
const PAUSE = 600; // ms after the last key

export class ChartDialog {
  /** `keys()`: those that can be named; `titled(key)`: what each is; `saved(spec, isNew)`. */
  constructor(dialog, { api, keys, titled, saved }) {
    Object.assign(this, { dialog, api, keys, titled, saved, spec: null, count: 0 });
    this.title = dialog.querySelector("[name=title]");
    this.lines = dialog.querySelector("[data-lines]");
    this.ends = ["lowest", "highest"].map((name) => dialog.querySelector(`[name=${name}]`));
    this.trouble = dialog.querySelector("[data-trouble]");
    this.more = dialog.querySelector("[data-add]");
    this.more.addEventListener("click", () => this.add("").focus());
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.save();
    });
  }

  open(spec = null) {
    this.spec = spec;
    this.dialog.querySelector("h2").textContent = spec ? "Edit the chart" : "New chart";
    this.title.value = spec?.title ?? "";
    for (const end of this.ends) end.value = spec?.[end.name] ?? "";
    this.trouble.textContent = "";
    this.lines.replaceChildren();
    for (const text of spec?.expressions ?? [""]) this.add(text);
    show(this.dialog);
    (spec ? this.title : this.inputs()[0]).focus();
  }

  inputs() {
    return [...this.lines.querySelectorAll("input")];
  }

  add(text) {
    const id = `chart-line-${++this.count}`;
    const input = Object.assign(make("input", "input mono"), { id, value: text, maxLength: 500, autocomplete: "off", spellcheck: false, placeholder: "reward/mean - 0.1 * policy/kl" });
    const list = Object.assign(make("ul", "query-options"), { id: `${id}-keys`, hidden: true });
    const problem = Object.assign(make("p", "error"), { id: `${id}-problem`, hidden: true });
    problem.setAttribute("role", "status");
    const hint = Object.assign(make("p", "tiny muted"), { hidden: true });
    hint.dataset.hint = "";
    hint.setAttribute("role", "status");
    const attributes = { role: "combobox", "aria-label": "Expression", "aria-expanded": "false", "aria-autocomplete": "list", "aria-controls": list.id };
    for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Metrics");
    const remove = make("button", "btn ghost small icon-only", icon("x"));
    remove.type = "button";
    remove.setAttribute("aria-label", "Remove this expression");
    const row = make("div", "chart-line", make("div", "query-box", input, list), remove, problem, hint);
    remove.addEventListener("click", () => {
      row.remove();
      this.limit();
      this.inputs().at(-1).focus();
    });
    input.addEventListener("input", () => {
      this.say(row, "");
      clearTimeout(row.pause);
      row.pause = setTimeout(() => this.check(row, true), PAUSE);
    });
    input.addEventListener("change", () => this.check(row, false));
    this.lines.append(row);
    row.closeList = queryBox(input, list, async (typed, cursor) => suggestions(this.keys(), this.titled, typed, cursor));
    this.limit();
    return input;
  }

  /** One line stays; there are at most `MOST`. */
  limit() {
    const rows = [...this.lines.children];
    for (const row of rows) row.querySelector("button").disabled = rows.length === 1;
    this.more.disabled = rows.length >= MOST;
  }

  say(row, text) {
    const [input, problem] = [row.querySelector("input"), row.querySelector(".error")];
    problem.textContent = text;
    problem.hidden = !text;
    const told = { "aria-invalid": "true", "aria-describedby": problem.id };
    for (const [name, value] of Object.entries(told)) text ? input.setAttribute(name, value) : input.removeAttribute(name);
  }

  /** The error of the expression, while it is written. A missing end may still come, so its error waits until the field is left. */
  async check(row, writing) {
    clearTimeout(row.pause);
    const text = row.querySelector("input").value;
    if (!text.trim() || !this.dialog.open) return;
    const told = await json(`${this.api}/computed/check?${new URLSearchParams({ expression: text })}`).catch((error) => error);
    if (text !== row.querySelector("input").value || !row.isConnected) return; // an answer to an earlier text
    const place = told.body?.place;
    if (place && !(writing && place.end >= text.trimEnd().length)) this.say(row, `At character ${place.start + 1}: ${told.fields[0].message}`);
    const known = new Set(this.keys());
    const unknown = writing ? [] : (told.items?.[0].keys ?? []).filter((key) => !known.has(key));
    this.hint(row, unknown.length ? `This run does not have ${unknown.join(", ")}.` : "");
  }

  /** A chart is for all runs of a recipe, so a metric that this run lacks is not an error. */
  hint(row, text) {
    const hint = row.querySelector("[data-hint]");
    hint.textContent = text;
    hint.hidden = !text;
  }

  async save() {
    const rows = [...this.lines.children].filter((row, i, all) => row.querySelector("input").value.trim() || all.length === 1);
    const body = { title: this.title.value, expressions: rows.map((row) => row.querySelector("input").value) };
    for (const { name, value } of this.ends) body[name] = value === "" ? null : Number(value);
    const isNew = !this.spec;
    const [address, method] = isNew ? [`${this.api}/charts`, "POST"] : [`${this.api}/charts/${this.spec.id}`, "PUT"];
    const sent = await send(this.dialog, () => json(address, { method, body }), (error) => this.explain(error, rows));
    if (sent) this.saved(sent.answer, isNew);
  }

  /** Each problem at its field; of an expression the wrong part is selected. */
  explain(error, rows) {
    const place = error.body?.place;
    const others = [];
    for (const { path, message } of error.fields) {
      const row = rows[Number(path.match(/^expressions\.(\d+)$/)?.[1] ?? -1)];
      if (!row) others.push(message);
      else {
        this.say(row, place ? `At character ${place.start + 1}: ${message}` : message);
        const input = row.querySelector("input");
        input.focus();
        if (place) input.setSelectionRange(place.start, place.end);
        row.closeList(); // it would cover what is wrong
      }
    }
    if (error.fields.some(({ path }) => path === "highest")) this.ends[1].focus();
    this.trouble.textContent = error.fields.length ? others.join(" ") : error.message;
  }
}
