// The rollout viewer: one step and phase at a time, responses in their groups, verdicts in words. New steps are announced, and the shown
// rollouts stay. Step, phase, filters, order and tint are in the address.
import { icon } from "./icons.js";
import { json } from "./http.js";
import { make, number, score } from "./format.js";
import { register } from "./keys.js";
import { filtered, listen, offer, parameters, readAddress, sampled, show, sortedByServer, state, writeAddress } from "./rolloutfilters.js";
import { calls, criterion, formula, parts } from "./rolloutparts.js";
import { passages } from "./rolloutwords.js";
import { api, onBack, onMessage, runId } from "./run.js";
import { refresh as refreshSent, sendLink, sendList, sentPlace } from "./rolloutsent.js";
import { listNotes } from "./runnotes.js";
import { VIEWERS } from "./samples.js";
import { OTHERS, scale, spoken, tinted, tokens } from "./tint.js";
import { toast } from "./toast.js";
import { attach, fetchNotes, forgetCards, leads, showsTokens } from "./tokennotes.js";
import { walkable } from "./tokenwalk.js";

const PAGE = 100;
const by = (id) => document.getElementById(id);
let steps = { train: [], eval: [] }; // steps that have rollouts, ascending
let rows = [];
let cursor = null;
let oldest = null; // where a search over all steps stopped
let waiting = 0; // rollouts that a search for words left out
let indexed = 0; // those among which it searched, if it left out some
let told = null; // the facets
let tint = null; // the scale, if tokens are tinted
let request = 0;
const unseen = new Set();
const viewer = by("rollouts").dataset.viewer;
const phaseNamed = new URLSearchParams(location.search).has("phase");

async function facets() {
  const step = state.step === null ? "" : `&step=${state.step}`;
  told = await json(`${api}/rollouts/facets?counted=false${step}`);
  steps = { train: [], eval: [] };
  for (const { step, phase } of told.steps) steps[phase]?.push(step);
  offer(told);
  by("formula").textContent = formula(told);
  by("formula").hidden = !formula(told);
}

/** The nearest step with rollouts; the newest one if no step was requested. */
function settle() {
  const other = state.phase === "train" ? "eval" : "train";
  if (!phaseNamed && !steps[state.phase].length && steps[other].length) state.phase = other;
  const all = steps[state.phase];
  if (!all.length) return (state.step = null);
  if (state.step === null) return (state.step = all.at(-1));
  state.step = all.reduce((best, step) => (Math.abs(step - state.step) < Math.abs(best - state.step) ? step : best));
}

async function load({ more = false } = {}) {
  const mine = ++request;
  if (!more) by("groups").setAttribute("aria-busy", "true");
  try {
    await facets();
    if (mine !== request) return;
    settle();
    controls();
    if (state.step === null) {
      rows = [];
      cursor = null;
      waiting = 0;
    } else {
      const query = parameters();
      query.set("limit", PAGE);
      if (!state.all) query.set("step", state.step);
      if (more && cursor) query.set("cursor", cursor);
      const [found] = await Promise.all([json(`${api}/rollouts?${query}`), sampled && notes()]);
      if (mine !== request) return;
      rows = more ? [...rows, ...found.items] : found.items;
      cursor = found.next;
      oldest = found.oldest_step;
      waiting = found.waiting;
      indexed = found.indexed;
    }
  } catch (error) {
    toast(`The rollouts could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
  unseen.delete(`${state.phase} ${state.step}`);
  news();
  draw();
  writeAddress();
  sendList(parameters(), state.all ? null : state.step);
  if (rows.length) refreshSent(state.phase, state.all ? null : state.step);
}

/** Rollouts are shown also where their notes cannot be had. */
async function notes() {
  try {
    await fetchNotes(state.all ? null : state.step, state.phase, (row, card) => card.replaceWith(responseCard(row)));
  } catch (error) {
    toast(`The notes could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
}

function controls() {
  const all = steps[state.phase];
  const slider = by("step-slider");
  slider.max = Math.max(all.length - 1, 0);
  slider.value = Math.max(all.indexOf(state.step), 0);
  slider.disabled = all.length < 2 || state.all;
  by("step-shown").textContent = state.all ? "all" : state.step === null ? "–" : String(state.step);
  by("step-back").disabled = state.all || all.indexOf(state.step) <= 0;
  by("step-forward").disabled = state.all || all.indexOf(state.step) === all.length - 1;
  for (const button of document.querySelectorAll("[data-phase]")) button.setAttribute("aria-pressed", String(button.dataset.phase === state.phase));
  show();
  legend();
}

/** The scale of the tint, and where its values are lacking. */
function legend() {
  const place = by("tint-legend");
  place.hidden = !state.tint;
  if (!state.tint) return;
  const { css, legend: bins, notes } = (tint = scale(state.tint, rows));
  const items = bins.map(([bin, words]) => make("span", "legend-item", make("span", `tint-swatch t-${css} b${bin}`), words));
  if (bins.length && rows.some((row) => row.turns?.length)) items.push(make("span", "legend-item", make("span", "tint-swatch by-env"), OTHERS));
  if (notes.length) items.push(make("span", "legend-note", notes.join("; ")));
  place.replaceChildren(...items);
}

const missingLast = (value, down) => (value === null || value === undefined ? Infinity : down ? -value : value);

/** The key that distinguishes the groups on the page. */
const keyOf = (row) => (state.all ? `${row.step}-${row.group}` : String(row.group));

/** Groups in the chosen order. The responses of a group are in the same order. */
function grouped() {
  const groups = new Map();
  for (const row of rows) {
    if (!groups.has(keyOf(row))) groups.set(keyOf(row), []);
    groups.get(keyOf(row)).push(row);
  }
  const list = [...groups.values()];
  const down = state.sort.startsWith("-");
  const field = state.sort.replace("-", "");
  if (field === "spread") return list.sort((a, b) => spread(b) - spread(a));
  if (field === "place" || sortedByServer()) return list;
  const best = (group) => Math.min(...group.map((row) => missingLast(row[field], down)));
  for (const group of list) group.sort((a, b) => missingLast(a[field], down) - missingLast(b[field], down));
  return list.sort((a, b) => best(a) - best(b));
}

function spread(group) {
  const rewards = group.map((row) => row.reward).filter((reward) => reward !== null && reward !== undefined);
  return rewards.length ? Math.max(...rewards) - Math.min(...rewards) : -1;
}

const blank = (template) => {
  const fragment = by(template).content.cloneNode(true);
  return [fragment.firstElementChild, (name) => fragment.querySelector(`[data-part="${name}"]`)];
};

const many = (n, word) => `${n}${cursor ? "+" : ""} ${word}${n === 1 && !cursor ? "" : "s"}`;
const counted = (groups) => (sampled ? `${many(rows.length, "response")} to ${many(groups, "prompt")}` : many(groups, viewer));

function draw() {
  const place = by("groups");
  place.removeAttribute("aria-busy");
  legend();
  const groups = grouped();
  const scope = state.all && oldest ? `, from step ${oldest} on; name a step to look further back` : "";
  by("rollout-count").textContent = rows.length || scope ? `${counted(groups.length)}${scope}` : "";
  by("more-rollouts").hidden = !cursor;
  by("no-filters").hidden = !filtered();
  by("rollouts-waiting").hidden = !waiting;
  by("rollouts-waiting").textContent = waiting ? notSearched() : "";
  if (!groups.length) {
    const first = sampled ? `${viewer}s yet: the first appear with the first step` : `${viewer}s yet: the first appear with the first evaluation`;
    const scanned = cursor ? "No response fits the filter so far. “Show more” continues the search." : `No response of ${state.all ? "this run" : "this step"} fits the filter.`;
    const words = filtered() ? scanned : `No ${first}.`;
    return place.replaceChildren(make("p", "empty", words));
  }
  forgetCards();
  place.replaceChildren(...groups.map(groupCard));
  if (state.group !== null && !leads()) place.querySelector(`[data-group="${CSS.escape(state.group)}"]`)?.scrollIntoView({ block: "start" });
}

/** The server counts them to 10,000. */
function notSearched() {
  const count = waiting >= 10_000 ? "10,000 rollouts or more are" : waiting === 1 ? "1 rollout is" : `${waiting.toLocaleString("en")} rollouts are`;
  return `${count} not searched yet, because their words are still being indexed; ${indexed.toLocaleString("en")} are indexed so far. Search again in a moment.`;
}

function groupCard(group) {
  const [card, part] = blank("group-template");
  const first = group[0];
  const title = `${state.all ? `Step ${first.step} · ` : ""}Prompt ${first.group + 1}`;
  card.dataset.group = keyOf(first);
  card.setAttribute("aria-label", title);
  part("title").textContent = title;
  part("key").textContent = first.example_key;
  if (sampled) part("key").after(throughTraining(first));
  const rewards = group.map((row) => row.reward).filter((r) => r !== null && r !== undefined);
  if (rewards.length > 1 && !VIEWERS.pair.fits(group)) {
    const flat = spread(group) === 0;
    const words = flat ? "all alike: nothing to learn from" : `S from ${score(Math.min(...rewards))} to ${score(Math.max(...rewards))}`;
    part("spread").append(flat ? icon("equal") : icon("chart-no-axes-column"), words);
  }
  const send = sendLink(group, { whole: true });
  if (send) part("spread").append(send);
  part("prompt").textContent = first.prompt;
  const scaffolded = group.filter((row) => row.scaffold);
  if (scaffolded.length) {
    const most = scaffolded.reduce((a, b) => (b.scaffold_shown > a.scaffold_shown ? b : a));
    const what = most.hint ? `Hint: the first ${Math.round(most.hint * 100)} % of the reference reasoning` : `Scaffold: up to ${most.scaffold_shown} of ${most.criteria.length} criteria`;
    part("scaffold-title").textContent = `${what}, shown to ${scaffolded.length} of ${group.length} responses`;
    part("scaffold").textContent = most.scaffold;
  } else part("scaffold-fold").remove();
  const special = VIEWERS[viewer];
  part("responses").append(...(special?.fits(group) ? special.draw(group, blank, state.tint ? tint : null) : group.map(responseCard)));
  return card;
}

/** The way to the page of the same prompt at every step. */
function throughTraining({ example_key: key, phase, step }) {
  const link = make("a", "tiny through-training", "Through training");
  link.href = `/runs/${runId}/prompt?${new URLSearchParams({ key, phase, step })}`;
  return link;
}

function responseCard(row) {
  const [card, part] = blank("response-template");
  part("title").textContent = `Response ${row.index + 1}`;
  const s = make("strong", "score-s", `S ${score(row.reward)}`);
  const a = make("span", "score-a", row.advantage === null || row.advantage === undefined ? "A –" : `A ${row.advantage >= 0 ? "+" : "−"}${Math.abs(row.advantage).toFixed(2)}`);
  a.dataset.tone = row.advantage > 0 ? "good" : row.advantage < 0 ? "bad" : "";
  part("scores").append(s, " ", a);
  const send = sendLink([row]);
  if (send) part("scores").append(send);
  if (row.scaffold_shown) part("scores").prepend(make("span", "chip tiny", `${row.scaffold_shown} shown`));
  if (row.excluded) {
    part("excluded").hidden = false;
    part("excluded").append(icon("ban"), ` Left out of training: ${row.excluded}`);
  }
  const found = passages(row, state.text);
  if (found.length) part("passages").append(...found);
  else part("passages").remove();
  part("text").append(state.tint ? tinted(row, tint) : showsTokens(row) ? tokens(row) : row.turns?.length ? spoken(row.turns) : row.response || "(empty response)");
  part("text").classList.toggle("muted", !row.response && !row.turns?.length);
  if (state.tint || showsTokens(row)) part("text").after(walkable(part("text"), `Response ${row.index + 1}`));
  const ends = { stop: "", length: "cut at the length limit", env: "ended by the environment", error: "sampling failed" };
  part("finish").textContent = [length(row), sampledBy(row.stretches ?? row.spans ?? []), ends[row.finish_reason]].filter(Boolean).join(" · ");
  if (row.criteria?.length) part("criteria").append(...row.criteria.map((each) => criterion(each, state.criterion === each.text)));
  else part("criteria").remove(); // because its line would separate nothing
  const turns = row.turns_apart || row.turns?.length;
  if (turns) part("finish").before(Object.assign(make("a", "small", `Open the episode: ${number(turns)} turn${turns === 1 ? "" : "s"}`), { href: `${location.pathname}/${row.id}/episode` }));
  const components = Object.entries(row.components ?? {});
  const listed = parts(row, told);
  if (listed) part("parts").replaceWith(listed);
  else part("parts").remove();
  const words = listed ? row.parts.filter((each) => each.calls).length > 1 && calls(row.parts) : components.length > 1 ? components.map(([name, value]) => `${name} ${score(value)}`).join(" · ") : "";
  if (words) part("components").textContent = words;
  else part("components").remove();
  card.append(sentPlace(row));
  if (sampled) attach(card, part("text"), row);
  return card;
}

/** "23 tokens", and the number of those that the environment wrote. */
function length(row) {
  const others = (row.turns ?? []).filter(({ author }) => author === "env").reduce((sum, { tokens }) => sum + tokens, 0);
  return row.tokens?.length ? `${row.tokens.length} token${row.tokens.length === 1 ? "" : "s"}${others ? `, ${others} of them the environment's` : ""}` : "";
}

/** The weights that sampled it: "weights of step 3", or, if they were replaced half way, "… 3, from token 41 on 4". */
function sampledBy(stretches) {
  const [first, ...rest] = stretches.filter(({ version }, i) => version !== stretches[i - 1]?.version);
  return first ? [`weights of step ${first.version}`, ...rest.map(({ version, start }) => `from token ${start + 1} on ${version}`)].join(", ") : "";
}

/** "12 new": new steps are announced and not inserted, so that nothing moves under the pointer. */
function news() {
  const button = by("rollout-news");
  const mine = [...unseen].filter((place) => place.startsWith(state.phase));
  button.hidden = !mine.length;
  button.textContent = `${mine.length} new step${mine.length === 1 ? "" : "s"}: show the newest`;
}

function change(changes) {
  Object.assign(state, changes);
  load();
}

function walk(by_) {
  const all = steps[state.phase];
  const next = state.all ? undefined : all[all.indexOf(state.step) + by_];
  if (next !== undefined) change({ step: next, group: null });
}

function jump(by_) {
  const cards = [...document.querySelectorAll(".group")];
  const at = cards.findIndex((card) => card.dataset.group === state.group);
  const next = cards[Math.min(Math.max(at + by_, 0), cards.length - 1)];
  if (!next) return;
  state.group = next.dataset.group;
  writeAddress();
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "start" });
}

by("step-slider").addEventListener("input", (event) => (by("step-shown").textContent = steps[state.phase][event.target.value] ?? "–"));
by("step-slider").addEventListener("change", (event) => change({ step: steps[state.phase][event.target.value] ?? null, group: null }));
by("step-back").addEventListener("click", () => walk(-1));
by("step-forward").addEventListener("click", () => walk(1));
for (const button of document.querySelectorAll("[data-phase]")) button.addEventListener("click", () => change({ phase: button.dataset.phase, group: null }));
listen(change);
by("sort").addEventListener("change", (event) => change({ sort: event.target.value, group: null }));
by("tint").addEventListener("change", (event) => {
  state.tint = event.target.value;
  legend();
  draw();
  writeAddress();
});
by("more-rollouts").addEventListener("click", () => load({ more: true }));
by("rollout-news").addEventListener("click", () => {
  unseen.clear();
  change({ step: null, all: false, group: null });
});
register("j", "Next prompt", () => jump(1));
register("k", "Previous prompt", () => jump(-1));
register("t", "The prompt through training", () => {
  const chosen = [...document.querySelectorAll(".group")].find((card) => card.dataset.group === state.group) ?? document.querySelector(".group");
  chosen?.querySelector(".through-training")?.click();
});
register(".", "Next step", () => walk(1));
register(",", "Previous step", () => walk(-1));

onMessage("rollouts", ({ step, phase }) => {
  if (state.step === null && !rows.length) return load(); // nothing is shown yet
  if (phase === state.phase && step === state.step && !state.all) return load(); // the rest of the step on the page
  if (!steps[phase]?.includes(step)) {
    steps[phase]?.push(step);
    steps[phase]?.sort((a, b) => a - b);
    unseen.add(`${phase} ${step}`);
    controls();
    news();
  }
});
onBack(async () => {
  if (!steps[state.phase].length) return load(); // the first load is still under way, so nothing on the page is old
  const before = new Set(steps[state.phase]);
  await facets();
  for (const step of steps[state.phase]) if (!before.has(step)) unseen.add(`${state.phase} ${step}`);
  controls();
  news();
});
if (sampled) listNotes(by("groups"));
readAddress();
load();
