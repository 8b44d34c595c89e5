// The choices of a column: models of the registry, and kept checkpoints of the run. A job first makes a model of a checkpoint.
import { el } from "../annotate/dom.js";
import { json } from "../http.js";
import { pause } from "./pause.js";

const OFTEN_MS = 1500;
const OVER = ["finished", "failed", "stopped"];

export class Choices {
  constructor({ models, run }) {
    Object.assign(this, { models, run });
    this.names = new Map(models.map(({ id, name }) => [id, name]));
  }

  /** The first choices: those of the address, or the models with which the run began and which it made, or the two newest. */
  first(wanted) {
    const known = wanted.filter((value) => this.has(value));
    if (known.length) return known;
    const ofRun = this.run ? [this.run.base, ...this.run.models.slice(0, 1)] : [];
    const found = ofRun.filter((id) => this.names.has(id)).map(String);
    return found.length ? found : this.models.slice(0, 2).map(({ id }) => String(id));
  }

  has(value) {
    return this.names.has(Number(value)) || (this.run?.checkpoints ?? []).some(({ id }) => value === `checkpoint-${id}`);
  }

  fill(select, value) {
    const groups = [];
    if (this.run) groups.push(el("optgroup", { label: this.run.name }, ...this.ofRun()));
    const rest = this.models.filter(({ id }) => !this.isOfRun(id)).map(({ id, name }) => option(id, name));
    if (rest.length) groups.push(el("optgroup", { label: "Models" }, ...rest));
    select.replaceChildren(...groups);
    if (value && this.has(value)) select.value = value;
  }

  isOfRun(id) {
    return this.run && (this.run.base === id || this.run.models.includes(id));
  }

  ofRun() {
    const listed = [this.run.base, ...this.run.models].filter((id) => this.names.has(id));
    const made = listed.map((id) => option(id, id === this.run.base ? `${this.names.get(id)} (its base)` : this.names.get(id)));
    const kept = this.run.checkpoints.filter(({ model }) => !this.names.has(model));
    return [...made, ...kept.map(({ id, step }) => option(`checkpoint-${id}`, `Checkpoint of step ${step}`))];
  }

  /** The number of the chosen model. A checkpoint is exported first, and `tell` gets the progress. Throws an Error that says what to do. */
  async model(select, tell, signal) {
    const [, checkpoint] = select.value.match(/^checkpoint-(\d+)$/) ?? [];
    if (!checkpoint) return Number(select.value);
    const kept = this.run.checkpoints.find(({ id }) => id === Number(checkpoint));
    tell("Making a model of the checkpoint…");
    let job = await json(kept.export, { method: "POST", signal });
    while (!OVER.includes(job.state)) {
      await pause(OFTEN_MS, signal);
      job = await json(`/api/v1/weights-jobs/${job.id}`, { signal });
      tell(`Making a model of the checkpoint: ${job.phase || job.state}…`);
    }
    if (job.state !== "finished") throw new Error(`The checkpoint could not be exported: ${job.problem || job.state}`);
    return this.exported(select, kept, signal);
  }

  async exported(select, kept, signal) {
    this.run = await json(`/api/v1/try/runs/${this.run.id}`, { signal });
    const { model } = this.run.checkpoints.find(({ id }) => id === kept.id) ?? {};
    if (!model) throw new Error("The checkpoint was exported, and its model cannot be found. Load the page again.");
    if (!this.names.has(model)) this.models.unshift({ id: model, name: `Checkpoint of step ${kept.step}` });
    this.names.set(model, `Checkpoint of step ${kept.step}`);
    this.fill(select, String(model));
    return model;
  }
}

const option = (value, text) => el("option", { value: String(value) }, text);
