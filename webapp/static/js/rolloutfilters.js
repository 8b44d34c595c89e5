// The filters and the order of rollouts. The fields of `state` are the parameters of the address, and most of them are parameters of the
// API as well.
import { isKind } from "./tint.js";

const by = (id) => document.getElementById(id);
const PLAIN_SORTS = new Set(["reward", "-reward", "-advantage", "-spread"]); // that need nothing else to be chosen
const WRONG = { part: "right", high: "0" }; // for pairs: the model prefers the other answer
const viewer = by("rollouts").dataset.viewer;
const DEFAULTS = { phase: "train", key: "", sort: "place", wrong: "", criterion: "", verdict: "", tint: "", excluded: "", part: "", low: "", high: "", lacking: "", first: "", second: "", apart: "0.5", measure: "rank", text: "", formatted: "" };
const CONTROLS = ["criterion", "verdict", "excluded", "part", "low", "high", "first", "second", "apart", "measure", "text"];
/** Whether the samples are responses to prompts, several in a group. */
export const sampled = ["rollout", "judgement"].includes(viewer);
if (!sampled) DEFAULTS.phase = "eval"; // pairs and texts are shown in this phase
if (viewer === "text") DEFAULTS.tint = "loss";
export const state = { ...DEFAULTS, step: null, all: false, group: null };

const pair = () => Boolean(state.first && state.second && state.first !== state.second);

/** Whether a filter other than step and phase is set. */
export const filtered = () => Boolean(state.key || state.criterion || state.verdict || state.excluded || state.wrong || state.part || state.text.trim() || pair());
/** Whether the responses to a prompt stand beside each other in the list. */
export const inGroups = () => ["newest", "place", "-spread"].includes(serverSort().order);
/** Whether the list goes from step to step, so that it can begin at one. */
export const byStep = () => state.all && !state.text.trim() && serverSort().order === "newest";

export function readAddress() {
  const query = new URLSearchParams(location.search);
  for (const key of Object.keys(DEFAULTS)) state[key] = query.get(key) ?? DEFAULTS[key];
  if (!["train", "eval"].includes(state.phase)) state.phase = DEFAULTS.phase;
  if (state.tint && !isKind(state.tint)) state.tint = DEFAULTS.tint;
  const [first, second] = (query.get("between") ?? "").split(",");
  if (second) Object.assign(state, { first, second });
  state.all = query.get("step") === "all";
  const step = Number.parseInt(query.get("step"), 10);
  state.step = Number.isNaN(step) ? null : step;
  state.group = query.get("group");
}

export function writeAddress() {
  const query = new URLSearchParams();
  for (const [key, plain] of Object.entries(DEFAULTS)) if (state[key] !== plain && !["first", "second"].includes(key)) query.set(key, state[key]);
  if (pair()) query.set("between", `${state.first},${state.second}`);
  else query.delete("apart");
  if (state.all) query.set("step", "all");
  else if (state.step !== null) query.set("step", state.step);
  if (state.group !== null) query.set("group", state.group);
  history.replaceState(history.state, "", `?${query}`);
}

/** The parameters of the API, without step and cursor. */
export function parameters() {
  const sort = serverSort();
  const query = new URLSearchParams({ phase: state.phase, sort: sort.order });
  if (state.key) query.set("example_key", state.key);
  if (state.text.trim()) query.set("text", state.text.trim());
  for (const key of ["criterion", "verdict", "excluded"]) if (state[key]) query.set(key, state[key]);
  if (state.part) {
    query.set("part", state.part);
    for (const key of ["low", "high"]) if (Number.isFinite(Number.parseFloat(state[key]))) query.set(key, Number.parseFloat(state[key]));
    if (state.lacking) query.set("lacking", "true");
  }
  for (const [key, value] of Object.entries(WRONG)) if (state.wrong) query.set(key, value);
  if (sort.by) query.set("by", sort.by);
  if (pair()) {
    query.set("between", `${state.first},${state.second}`);
    query.set("measure", state.measure);
    query.set("apart", Math.max(Number.parseFloat(state.apart) || 0, 0));
  }
  return query;
}

/** The order for the server, which sorts all matching rollouts. If the part to sort by is not chosen, they stay in their own order.
`confidence:part` is
 * ascending by the number `confidence`, which every sample of the viewer has. */
function serverSort() {
  const [by_, order] = state.sort.split(":");
  if (order) return { order, by: by_ };
  if (["part", "-part"].includes(state.sort) && state.part) return { order: state.sort };
  if (state.sort === "-apart" && pair()) return { order: state.sort };
  if (PLAIN_SORTS.has(state.sort)) return { order: state.sort };
  return { order: state.all ? "newest" : "place" };
}

/** Offers the criteria and parts of this step as choices. */
export function offer({ criteria, parts }) {
  const texts = criteria.map((each) => new Option(`${each.text}  (${each.met} of ${each.met + each.unmet + each.missing} met)`, each.text));
  fill(by("criterion"), "Any criterion", texts, state.criterion);
  const range = ({ low, high, missing }) => [low === null ? "" : `${Number(low.toPrecision(3))} to ${Number(high.toPrecision(3))}`, missing ? `${missing} without` : ""].filter(Boolean).join(", ");
  fill(by("part"), "Any part", parts.map((part) => new Option(`${part.name}  (${range(part)})`, part.name)), state.part);
  offerTints(parts);
  for (const id of ["first", "second"]) fill(by(id), "a part", parts.map((part) => new Option(part.name, part.name)), state[id]);
  by("part-filters").hidden = !sampled || (!parts.length && !state.part && !pair());
  by("disagreement").hidden = parts.length < 2 && !pair();
}

/** A part can be tinted by as soon as a response on the page has it, or the address asks for it. */
function offerTints(parts) {
  const names = parts.map(({ name }) => name);
  const asked = state.tint.startsWith("part:") ? state.tint.slice(5) : "";
  if (asked && !names.includes(asked)) names.push(asked);
  by("tint").querySelector("optgroup")?.remove();
  if (!names.length) return;
  const group = Object.assign(document.createElement("optgroup"), { label: "Part of the reward" });
  group.append(...names.map((name) => new Option(name, `part:${name}`)));
  by("tint").append(group);
}

function fill(select, none, options, chosen) {
  if (chosen && !options.some((option) => option.value === chosen)) options.push(new Option(chosen, chosen));
  select.replaceChildren(new Option(none, ""), ...options);
  select.value = chosen;
}

/** Sets the controls by the state. */
export function show() {
  for (const id of [...CONTROLS, "sort", "tint"]) if (document.activeElement !== by(id) || by(id).tagName === "SELECT") by(id).value = state[id];
  by("lacking").checked = Boolean(state.lacking);
  by("wrong").checked = Boolean(state.wrong);
  by("all-steps").setAttribute("aria-pressed", String(state.all));
  by("formatted").setAttribute("aria-pressed", String(Boolean(state.formatted)));
  for (const option of by("sort").options) {
    if (["part", "-part"].includes(option.value)) option.disabled = !state.part;
    if (option.value === "-apart") option.disabled = !pair();
  }
  if (state.part || pair()) by("part-filters").open = true;
}

/** `change(changes)` is called with the choices of a person. */
export function listen(change) {
  for (const id of CONTROLS) {
    by(id).addEventListener("change", (event) => {
      const changes = { [id]: event.target.value, group: null };
      if (id === "part" && !event.target.value) Object.assign(changes, { low: "", high: "", lacking: "" });
      if (["first", "second"].includes(id)) {
        const both = { first: state.first, second: state.second, ...changes };
        const whole = both.first && both.second && both.first !== both.second;
        if (whole && state.sort === "place") changes.sort = "-apart";
        if (!whole && state.sort === "-apart") changes.sort = "place";
      }
      if (id === "text" && !state.text && event.target.value.trim()) changes.all = true; // words are looked for in the whole run
      change(changes);
    });
  }
  by("lacking").addEventListener("change", (event) => change({ lacking: event.target.checked ? "true" : "", group: null }));
  by("wrong").addEventListener("change", (event) => change({ wrong: event.target.checked ? "true" : "", group: null }));
  by("all-steps").addEventListener("click", () => change({ all: !state.all, group: null }));
  by("no-filters").addEventListener("click", () => change({ ...DEFAULTS, phase: state.phase, tint: state.tint, formatted: state.formatted, group: null }));
}
