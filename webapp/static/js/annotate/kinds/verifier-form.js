// Chooses the verifier of a criterion: a program from the registry, a form for its arguments, and a trial on any text.
import { icon } from "../../icons.js";
import { json } from "../../http.js";
import { el } from "../dom.js";
import { debounced, VERDICTS } from "./parts.js";

const TRY_AFTER_MS = 300;
let asked = null;
let number = 0;

/** The registry, fetched once: Map of name -> { name, title, help, schema, examples }. */
export function registry() {
  asked ??= json("/api/v1/verifiers").then(({ items }) => new Map(items.map((each) => [each.name, each])));
  asked.catch(() => (asked = null));
  return asked;
}

const plain = (field) => field.anyOf?.find(({ type }) => type !== "null") ?? field;
const words = (name) => name.replaceAll("_", " ");

export class VerifierForm {
  /** `spec`: { name, args } or null; `changed(spec)` at every change. */
  constructor({ spec, changed }) {
    Object.assign(this, { spec: spec ?? null, changed, asked: 0 });
    this.id = `verifier-${++number}`;
    this.choice = el("select.select", { id: this.id, onchange: () => this.choose(this.choice.value) }, el("option", { value: "" }, "A judge or a person decides"));
    this.help = el("p.help");
    this.fields = el("div.verifier-args");
    this.text = el("textarea.textarea", { rows: 2, dir: "auto", id: `${this.id}-text`, placeholder: "Type or paste a text; the verdict follows" });
    this.found = el("p.verifier-found.small", { role: "status" });
    const example = el("button.btn.ghost.small", { type: "button", onclick: () => this.showExample() }, "Example");
    this.trying = el("div.field", {}, el("div.row", {}, el("label.field-label", { htmlFor: `${this.id}-text` }, "Try it on a text"), example), this.text, this.found);
    this.test = debounced(() => this.tryOut(), TRY_AFTER_MS);
    this.text.addEventListener("input", this.test);
    this.element = el("div.verifier-form", {}, el("div.field", {}, el("label.field-label", { htmlFor: this.id }, "Checked by"), this.choice, this.help), this.fields, this.trying);
    this.load();
  }

  async load() {
    try {
      this.known = await registry();
    } catch (error) {
      this.help.textContent = `The list of verifiers could not be loaded: ${error.message}`;
      return;
    }
    this.choice.append(...[...this.known.values()].map(({ name, title }) => el("option", { value: name }, title)));
    this.choice.value = this.spec?.name ?? "";
    this.draw();
  }

  choose(name) {
    this.spec = name ? { name, args: {} } : null;
    this.draw();
    this.tell();
  }

  tell() {
    this.changed(this.spec && structuredClone(this.spec));
    this.test();
  }

  draw() {
    const verifier = this.spec && this.known.get(this.spec.name);
    this.trying.hidden = !verifier;
    this.help.textContent = verifier ? verifier.help : "Choose a program if the criterion can be decided without opinion: a program always gives the same answer, at no cost.";
    this.fields.replaceChildren(...(verifier ? Object.entries(verifier.schema.properties ?? {}).map(([name, field]) => this.field(name, field, verifier.schema)) : []));
    this.found.replaceChildren();
  }

  field(name, field, schema) {
    const id = `${this.id}-${name}`;
    const value = this.spec.args[name] ?? field.default;
    const kind = plain(field);
    const needed = schema.required?.includes(name);
    const control = this.control(id, name, kind, value);
    const help = field.description ? el("p.help", { id: `${id}-help` }, field.description) : null;
    if (help) control.setAttribute("aria-describedby", help.id);
    const error = el("p.error", { data: { of: `args.${name}` }, hidden: true });
    if (kind.type === "boolean") return el("div.field", {}, el("label.check", {}, control, words(name)), help, error);
    const label = el("label.field-label", { htmlFor: id }, words(name), needed ? null : el("span.optional", {}, " optional"));
    return el("div.field", {}, label, control, help, error);
  }

  control(id, name, kind, value) {
    const set = (given) => {
      if (given === undefined) delete this.spec.args[name];
      else this.spec.args[name] = given;
      this.tell();
    };
    if (kind.enum) {
      const options = [value === undefined ? el("option", { value: "" }, "choose") : null, ...kind.enum.map((each) => el("option", { value: each, selected: each === value }, each))].filter(Boolean);
      return el("select.select", { id, onchange: (event) => set(event.target.value || undefined) }, ...options);
    }
    if (kind.type === "boolean") return el("input", { type: "checkbox", id, checked: Boolean(value), onchange: (event) => set(event.target.checked) });
    if (kind.type === "integer")
      return el("input.input", { type: "number", id, min: kind.minimum ?? "", max: kind.maximum ?? "", step: 1, value: value ?? "", oninput: (event) => set(event.target.value === "" ? undefined : Number(event.target.value)) });
    if (kind.type === "array")
      return el("textarea.textarea.mono", { id, rows: 2, dir: "auto", value: (value ?? []).join("\n"), placeholder: "One per line", oninput: (event) => set(event.target.value.split("\n").filter((line) => line.trim())) });
    return el("input.input.mono", { type: "text", id, value: value ?? "", dir: "auto", autocomplete: "off", spellcheck: false, oninput: (event) => set(event.target.value || undefined) });
  }

  /** Shows an example of the registry: its text, and its arguments if none are given yet. */
  showExample() {
    const { examples } = this.known.get(this.spec.name);
    const example = examples[(this.shownExample = ((this.shownExample ?? -1) + 1) % examples.length)];
    this.text.value = example.text;
    if (!Object.keys(this.spec.args).length) {
      this.spec.args = structuredClone(example.args);
      this.draw();
      this.tell();
    } else this.test();
  }

  async tryOut() {
    const { spec } = this;
    const round = ++this.asked;
    if (!spec || !this.text.value) return this.tellFound();
    try {
      const finding = await json(`/api/v1/verifiers/${spec.name}/try`, { body: { text: this.text.value, args: spec.args } });
      if (round === this.asked) this.tellFound(finding);
    } catch (error) {
      if (round === this.asked) this.tellFound(null, error);
    }
  }

  tellFound(finding = null, error = null) {
    const fields = error?.fields ?? [];
    for (const line of this.fields.querySelectorAll("[data-of]")) {
      const told = fields.find(({ path }) => path === line.dataset.of);
      line.hidden = !told;
      line.textContent = told?.message ?? "";
    }
    this.found.replaceChildren();
    if (error) {
      const elsewhere = fields.filter(({ path }) => !this.fields.querySelector(`[data-of="${CSS.escape(path)}"]`));
      this.found.append(icon("triangle-alert"), " ", elsewhere[0]?.message ?? (fields.length ? "The arguments do not fit yet." : error.message));
    } else if (finding) {
      const { words: verdict, shape, tone } = finding.met === null ? { words: "No answer", shape: () => icon("triangle-alert"), tone: "warn" } : VERDICTS[finding.met ? "met" : "not_met"];
      this.found.append(el("span.chip", { data: { tone } }, shape(), verdict), " ", finding.note);
    }
  }

  focus() {
    this.choice.focus();
  }
}
