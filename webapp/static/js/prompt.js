// One prompt through training: its steps as curves and rows, and two of them side by side with the words that differ.
// Phase, both steps and the response live in the address.
import { counted, exact, make, number, score } from "./format.js";
import { json } from "./http.js";
import { icon } from "./icons.js";
import { register } from "./keys.js";
import { StepChart } from "./stepchart.js";
import { spoken } from "./tint.js";
import { toast } from "./toast.js";
import { difference } from "./worddiff.js";

const PAGE = 50;
const DRAWN = 2_000; // steps of a curve: the newest
const RESPONSES = 100; // of a step
const KEPT = 20; // steps whose responses stay in memory

const by = (id) => document.getElementById(id);
const root = by("prompt");
const { api, key } = root.dataset;
const query = new URLSearchParams(location.search);
const wholeNumber = (text) => (/^\d+$/.test(text ?? "") ? Number(text) : null);
const state = {
  phase: query.get("phase") === "eval" ? "eval" : "train",
  step: wholeNumber(query.get("step")),
  beside: wholeNumber(query.get("beside")),
  response: Math.max((wholeNumber(query.get("response")) ?? 1) - 1, 0),
  all: query.get("show") === "all",
  differences: query.get("differences") !== "off",
};
let steps = []; // of the curves, ascending
let rows = []; // with lengths, the newest first
let cursor = null;
const asked = { steps: 0, sides: 0 }; // an answer to an earlier choice is dropped
const responses = new Map();

const there = (value) => value !== null && value !== undefined;
const charts = [
  new StepChart({ title: "Reward", words: rewardWords, format: exact, choose }),
  new StepChart({ title: "Length", words: ({ step, mean, unit }) => `step ${step}: ${number(Math.round(mean))} ${unit}`, format: (value) => value.toLocaleString("en"), choose }),
];
by("charts").append(...charts.map(({ element }) => element));

function rewardWords({ step, mean, spread, low, high, rewarded, responses: all }) {
  const lacking = all - rewarded ? `, ${all - rewarded} without a reward` : "";
  const range = rewarded > 1 ? ` ± ${exact(Number(spread.toPrecision(3)))}, ${score(low)} to ${score(high)}` : "";
  return `step ${step}: ${score(mean)}${range}, ${counted(all, "response")}${lacking}`;
}

const ask = (more) => json(`${api}/rollouts/prompt?${new URLSearchParams({ example_key: key, phase: state.phase, ...more })}`);

async function load() {
  const mine = ++asked.steps;
  root.setAttribute("aria-busy", "true");
  try {
    const [drawn, listed] = await Promise.all([ask({ lengths: false, limit: DRAWN }), ask({ limit: PAGE })]);
    if (mine !== asked.steps) return;
    if (!drawn.items.length && drawn.phases.length) return change({ phase: drawn.phases[0], step: null, beside: null }, true);
    steps = [...drawn.items].reverse();
    by("curves-scope").textContent = `${counted(steps.length, "step")}${drawn.next ? ", the newest" : ""}`;
    by("prompt-text").textContent = drawn.prompt ?? "";
    by("phases").hidden = drawn.phases.length < 2;
    [rows, cursor] = [listed.items, listed.next];
    responses.clear();
    settle();
    list();
    show();
  } catch (error) {
    toast(`The steps could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
  root.removeAttribute("aria-busy");
}

/** Steps that there are: the newest on the right, the first on the left. */
function settle() {
  const nearest = (wanted) => steps.reduce((best, { step }) => (Math.abs(step - wanted) < Math.abs(best - wanted) ? step : best), steps[0].step);
  for (const id of ["none", "curves", "sides", "steps"]) by(id).hidden = (id === "none") === Boolean(steps.length);
  if (!steps.length) return;
  state.step = nearest(state.step ?? steps.at(-1).step);
  state.beside = nearest(state.beside ?? steps[0].step);
  for (const id of ["step", "beside"]) by(id).replaceChildren(...[...steps].reverse().map(({ step }) => new Option(`step ${step}`, step)));
}

function show() {
  for (const button of document.querySelectorAll("[data-phase]")) button.setAttribute("aria-pressed", String(button.dataset.phase === state.phase));
  for (const button of document.querySelectorAll("[data-show]")) button.setAttribute("aria-pressed", String((button.dataset.show === "all") === state.all));
  by("which").hidden = state.all;
  by("differences").closest("label").hidden = state.all;
  by("differences").checked = state.differences;
  if (steps.length) {
    for (const id of ["step", "beside"]) by(id).value = state[id];
    by("earlier").disabled = at(state.step) <= 0;
    by("later").disabled = at(state.step) >= steps.length - 1;
    curves();
    for (const row of document.querySelectorAll("#rows tr")) row.setAttribute("aria-current", String(Number(row.dataset.step) === state.step));
    sides();
  }
  address();
}

const at = (step) => steps.findIndex((each) => each.step === step);

function curves() {
  charts[0].show(steps.map((each) => ({ ...each, low: each.rewarded > 1 ? each.low : null })), state.step, state.beside);
  const unit = rows.some(({ tokens }) => there(tokens)) ? "tokens" : "characters";
  const lengths = rows.map((row) => ({ step: row.step, mean: row[unit], unit })).reverse();
  charts[1].show(lengths, state.step, state.beside);
}

function list() {
  by("rows").replaceChildren(...rows.map(rowOf));
  by("more").hidden = !cursor;
}

function rowOf(row) {
  const cell = (text, css = "num") => make("td", there(text) ? css : `${css} missing`, text ?? "–");
  const button = make("button", "link num", String(row.step));
  button.type = "button";
  button.setAttribute("aria-label", `Step ${row.step} on the right`);
  button.addEventListener("click", () => choose(row.step, false));
  const link = make("a", "small", "Rollouts");
  link.href = `${root.dataset.rollouts}?${new URLSearchParams({ phase: state.phase, key, step: row.step })}`;
  link.setAttribute("aria-label", `Rollouts of step ${row.step}`);
  const element = make("tr", "", make("td", "num", button), cell(`${row.responses}${row.responses - row.rewarded ? `, ${row.responses - row.rewarded} without a reward` : ""}`));
  element.append(cell(there(row.mean) ? score(row.mean) : null), cell(there(row.spread) ? score(row.spread) : null));
  element.append(cell(there(row.low) ? `${score(row.low)} to ${score(row.high)}` : null));
  element.append(cell(there(row.tokens) ? number(Math.round(row.tokens)) : null), cell(there(row.characters) ? number(Math.round(row.characters)) : null), make("td", "fit", link));
  element.dataset.step = row.step;
  return element;
}

async function earlierRows() {
  try {
    const found = await ask({ limit: PAGE, cursor });
    rows = [...rows, ...found.items];
    cursor = found.next;
    list();
    show();
  } catch (error) {
    toast(`The steps could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
}

async function responsesOf(step) {
  if (!responses.has(step)) {
    const wanted = new URLSearchParams({ example_key: key, phase: state.phase, step, limit: RESPONSES });
    const found = await json(`${api}/rollouts?${wanted}`);
    if (responses.size >= KEPT) responses.delete(responses.keys().next().value);
    responses.set(step, found);
  }
  return responses.get(step);
}

async function sides() {
  const mine = ++asked.sides;
  try {
    const [left, right] = await Promise.all([responsesOf(state.beside), responsesOf(state.step)]);
    if (mine !== asked.sides) return;
    const most = Math.max(left.items.length, right.items.length);
    state.response = Math.min(state.response, most - 1);
    by("response-shown").textContent = `${state.response + 1} of ${most}`;
    by("response-back").disabled = state.response <= 0;
    by("response-on").disabled = state.response >= most - 1;
    const pair = [left.items[state.response], right.items[state.response]];
    const parts = !state.all && state.differences && pair.every(Boolean) ? difference(textOf(pair[0]), textOf(pair[1])) : undefined;
    by("compared").textContent = told(parts);
    by("left").replaceChildren(...side(state.beside, left, pair[0], parts, "removed"));
    by("right").replaceChildren(...side(state.step, right, pair[1], parts, "added"));
  } catch (error) {
    toast(`The responses could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
}

function told(parts) {
  if (parts === undefined) return "";
  if (parts === null) return "Too many words differ to mark them.";
  const size = (kind) => parts.filter((part) => part.kind === kind).length;
  return parts.every(({ kind }) => kind === "same") ? "The same words." : `${counted(size("removed"), "passage")} only on the left, ${size("added").toLocaleString("en")} only on the right`;
}

const textOf = (row) => (row.turns?.length ? row.turns.map(({ text }) => text).join("\n") : row.response);

/** A step: its heading, and one response of it or all. */
function side(step, found, chosen, parts, kind) {
  const summary = steps[at(step)];
  const head = make("header", "step-head", make("h3", "", `Step ${step}`), make("span", "num small soft push", rewardWords(summary).replace(/^step \d+: /, "")));
  const shown = state.all ? found.items : [chosen].filter(Boolean);
  const cards = shown.map((row) => responseCard(row, parts, kind));
  if (!shown.length) cards.push(make("p", "muted small", `Step ${step} has ${counted(found.items.length, "response")} to this prompt.`));
  if (state.all && found.next) cards.push(make("p", "muted small", `The first ${RESPONSES} responses of the step.`));
  return [head, ...cards];
}

function responseCard(row, parts, kind) {
  const scores = make("span", "response-scores num", make("strong", "score-s", `S ${score(row.reward)}`));
  if (there(row.advantage)) scores.append(make("span", "score-a", `A ${row.advantage >= 0 ? "+" : "−"}${Math.abs(row.advantage).toFixed(2)}`));
  const name = `Response ${row.index + 1}`;
  const card = make("section", "response", make("header", "response-head", make("h4", "", name), scores));
  if (row.excluded) card.append(make("p", "excluded", icon("ban"), ` Left out of training: ${row.excluded}`));
  const text = make("div", "response-text");
  if (parts) text.append(...parts.filter((part) => part.kind === "same" || part.kind === kind).map((part) => marked(part, kind)));
  else text.append(row.turns?.length ? spoken(row.turns) : row.response || "(empty response)");
  const ends = { stop: "", length: "cut at the length limit", env: "ended by the environment", error: "sampling failed" };
  const length = row.tokens?.length ? counted(row.tokens.length, "token") : counted([...textOf(row)].length, "character");
  card.append(text, make("p", "tiny muted", [length, ends[row.finish_reason]].filter(Boolean).join(" · ")));
  return card;
}

/** `side` is the kind that this side marks. */
function marked({ kind, text, other }, side) {
  if (kind === "same") return side === "removed" ? other : text;
  return make(kind === "removed" ? "del" : "ins", "word-diff", text);
}

function address() {
  const wanted = new URLSearchParams({ key });
  if (state.phase !== "train") wanted.set("phase", state.phase);
  for (const id of ["step", "beside"]) if (state[id] !== null) wanted.set(id, state[id]);
  if (state.all) wanted.set("show", "all");
  else if (state.response) wanted.set("response", state.response + 1);
  if (!state.differences) wanted.set("differences", "off");
  history.replaceState(null, "", `?${wanted}`);
}

function change(changes, again = false) {
  Object.assign(state, changes);
  if (again) load();
  else show();
}

function choose(step, left) {
  change(left ? { beside: step } : { step });
}

function walk(name, by_) {
  const next = steps[at(state[name]) + by_];
  if (next) change({ [name]: next.step });
}

const respond = (by_) => !state.all && change({ response: Math.max(state.response + by_, 0) });

by("more").addEventListener("click", earlierRows);
for (const id of ["step", "beside"]) by(id).addEventListener("change", (event) => change({ [id]: Number(event.target.value) }));
by("earlier").addEventListener("click", () => walk("step", -1));
by("later").addEventListener("click", () => walk("step", 1));
by("response-back").addEventListener("click", () => respond(-1));
by("response-on").addEventListener("click", () => respond(1));
by("differences").addEventListener("change", (event) => change({ differences: event.target.checked }));
for (const button of document.querySelectorAll("[data-phase]")) button.addEventListener("click", () => change({ phase: button.dataset.phase, step: null, beside: null }, true));
for (const button of document.querySelectorAll("[data-show]")) button.addEventListener("click", () => change({ all: button.dataset.show === "all" }));
register(",", "Earlier step on the right", () => walk("step", -1));
register(".", "Later step on the right", () => walk("step", 1));
register("<", "Earlier step on the left", () => walk("beside", -1));
register(">", "Later step on the left", () => walk("beside", 1));
register("j", "Next response", () => respond(1));
register("k", "Previous response", () => respond(-1));
register("d", "Mark the words that differ, or not", () => change({ differences: !state.differences }));
load();
