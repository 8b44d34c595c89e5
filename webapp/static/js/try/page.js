// Models side by side: one prompt, and up to four answers at once.
import { register } from "../keys.js";
import { Choices } from "./choices.js";
import { Column } from "./column.js";
import { Pairs } from "./pairs.js";
import { Prompts } from "./prompts.js";
import { Scorer } from "./score.js";

const MOST = 4;
const FIELDS = { temperature: "try-temperature", top_p: "try-top-p", max_new_tokens: "try-tokens", seed: "try-seed" };
const part = (id) => document.getElementById(id);
const act = (name) => document.querySelector(`[data-do="${name}"]`);
const offered = JSON.parse(part("try-offered").textContent);
const address = new URLSearchParams(location.search);

const choices = new Choices(offered);
const pairs = new Pairs();
const columns = [];
const scorer = new Scorer({ changed: scoreAnew });
const prompts = new Prompts({ datasets: offered.datasets, changed: remember, problem });

function problem(words = "") {
  part("try-problem").textContent = words;
  part("try-problem").hidden = !words;
}

/** The settings for the API; null if one of them cannot be used, and its field then says so. */
function sampling() {
  const found = {};
  for (const [name, id] of Object.entries(FIELDS)) {
    if (!part(id).reportValidity() || part(id).value === "") return null;
    found[name] = Number(part(id).value);
  }
  return found;
}

function request() {
  const asked = prompts.request();
  if (!asked) {
    problem("Write a prompt first, or choose a dataset.");
    part("try-prompt").focus();
    return null;
  }
  const settings = sampling();
  if (settings === null) problem("A setting is out of its range.");
  return settings && { ...asked, sampling: settings };
}

function ask(which = columns) {
  problem();
  const asked = request();
  if (asked) for (const column of which) column.ask(asked);
}

/** Asks for one answer again, with the prompt of the others, so that they can be compared. With another seed it can differ. */
function retry(column) {
  problem();
  column.ask(column.asked);
}

function stop() {
  for (const column of columns) column.stop();
}

function add(value) {
  if (columns.length === MOST) return;
  const column = new Column({ choices, scorer, value, moved, leave, retry });
  columns.push(column);
  part("try-answers").append(column.element);
  arranged();
}

function leave(column) {
  columns.splice(columns.indexOf(column), 1);
  column.leave();
  arranged();
}

function arranged() {
  columns.forEach((column, i) => {
    column.label(String.fromCharCode(65 + i));
    column.remover.hidden = columns.length === 1;
  });
  act("add").disabled = columns.length === MOST;
  moved();
}

function moved() {
  act("stop").disabled = !columns.some((column) => column.running);
  pairs.draw(columns);
  remember();
}

/** Keeps the models, the settings and the prompt of a dataset in the address. */
function remember() {
  const kept = new URLSearchParams();
  if (offered.run) kept.set("run", offered.run.id);
  kept.set("models", columns.map((column) => column.value).join(","));
  for (const [name, id] of Object.entries(FIELDS)) if (part(id).value !== part(id).defaultValue) kept.set(name, part(id).value);
  if (scorer.value !== "rubric") kept.set("score", scorer.value);
  if (prompts.dataset) {
    kept.set("dataset", prompts.dataset.id);
    if (prompts.at > 0) kept.set("at", prompts.at + 1);
  }
  history.replaceState(null, "", `?${kept}`);
}

function scoreAnew() {
  for (const column of columns) column.scoredAnew();
  remember();
}

async function step(by) {
  problem();
  if (!(await prompts.step(by))) return;
  for (const column of columns) {
    column.stop();
    column.clear();
  }
  moved();
}

function next() {
  const free = offered.models.find(({ id }) => !columns.some(({ value }) => value === String(id)));
  add(String(free?.id ?? offered.models[0].id));
}

act("ask").addEventListener("click", () => ask());
act("stop").addEventListener("click", stop);
act("add").addEventListener("click", next);
act("previous").addEventListener("click", () => step(-1));
act("next").addEventListener("click", () => step(1));
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    ask();
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) stop();
});
register("n", "Next prompt of the dataset", () => step(1));
register("p", "Previous prompt of the dataset", () => step(-1));
register("s", "Send the first pair to people", () => pairs.sendFirst());
register("a", "Ask all models", () => ask());
for (const [name, id] of Object.entries(FIELDS)) {
  if (address.get(name)) part(id).value = address.get(name);
  part(id).addEventListener("change", remember);
}
if (address.has("score")) scorer.choose(address.get("score"));
for (const value of choices.first((address.get("models") ?? "").split(",").filter(Boolean)).slice(0, MOST)) add(value);
if (address.get("dataset")) prompts.choose(address.get("dataset"), Math.max(0, Number(address.get("at") ?? 1) - 1 || 0));
else part("try-prompt").focus();
