// The rollout viewer: one step and phase at a time, or all steps; responses in their groups, verdicts in words. The page holds what is near
// the view (`pagewindow.js`). New steps are announced, and the shown rollouts stay. Step, phase, filters, order and tint are in the address;
// where one reads is in the state of the history, so that the way back leads there.
import { drawBlock, fetchBlocks } from "./annotate/text.js";
import { icon } from "./icons.js";
import { json } from "./http.js";
import { make, number, score } from "./format.js";
import { register } from "./keys.js";
import { PageWindow } from "./pagewindow.js";
import { byStep, filtered, inGroups, listen, offer, parameters, readAddress, sampled, show, state, writeAddress } from "./rolloutfilters.js";
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
let oldest = null; // where a search over all steps stopped
let waiting = 0; // rollouts that a search for words left out
let indexed = 0; // those among which it searched, if it left out some
let told = null; // the facets
let tint = null; // the scale, if tokens are tinted
let range = {}; // the lowest and highest value of the part by which they are tinted
let request = 0;
let saving = 0; // the timer
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

const keyOf = (row) => (state.all ? `${row.step}-${row.group}` : String(row.group)); // distinguishes the groups on the page
const sticky = document.querySelector(".rollout-tools");
const joins = (row) => (inGroups() ? keyOf(row) : null);
const list = new PageWindow(by("groups"), { sticky, keyOf: joins, fetch: fetchPage, draw, told: changed, moved, failed });

/** The page of the list at `start`: `{cursor}`, `{from}` for a step, or `{}` for its beginning. */
async function fetchPage({ cursor, from }) {
  const query = parameters();
  query.set("limit", PAGE);
  if (!state.all) query.set("step", state.step);
  if (cursor) query.set("cursor", cursor);
  else if (from !== undefined) query.set("from_step", from);
  const found = await json(`${api}/rollouts?${query}`);
  oldest = found.oldest_step;
  waiting = found.waiting;
  indexed = found.indexed;
  if (state.formatted) await fetchBlocks([...new Set(found.items.flatMap(({ prompt, response }) => [prompt, response]))]); // so that cards have their height
  return found;
}

/** Reads the list from its beginning; with `reading`, from where somebody read it (`list.where`). */
async function load(reading = null) {
  const mine = ++request;
  let start = reading?.start ?? {};
  let found = null;
  by("groups").setAttribute("aria-busy", "true");
  try {
    await facets();
    if (mine !== request) return;
    settle();
    controls();
    waiting = 0;
    if (state.step !== null) {
      [found] = await Promise.all([fetchPage(start), sampled && notes()]);
      if (start.cursor && !found.previous) found = await fetchPage((start = {})); // this list does not lead back to what comes before
    }
  } catch (error) {
    if (mine === request) toast(`The rollouts could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
  if (mine !== request) return;
  unseen.delete(`${state.phase} ${state.step}`);
  news();
  range = {};
  list.reset(start, found);
  const key = reading?.key ?? state.group;
  if (key !== null && !leads()) list.goTo(key, reading?.top);
  writeAddress();
  sendList(parameters(), state.all ? null : state.step);
  if (found?.items.length) refreshSent(state.phase, state.all ? null : state.step);
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
  walkSteps();
  for (const button of document.querySelectorAll("[data-phase]")) button.setAttribute("aria-pressed", String(button.dataset.phase === state.phase));
  show();
  legend();
}

function walkSteps() {
  const all = steps[state.phase];
  const at = all.indexOf(shownStep());
  const fixed = state.all && !byStep(); // such a list goes from step to step in no order
  const slider = by("step-slider");
  slider.max = Math.max(all.length - 1, 0);
  slider.value = Math.max(at, 0);
  slider.disabled = all.length < 2 || fixed;
  by("step-shown").textContent = fixed ? "all" : String(shownStep() ?? "–");
  by("step-back").disabled = fixed || at <= 0;
  by("step-forward").disabled = fixed || at === all.length - 1;
}

/** The step of the page; in a list of all steps, that of the card at the upper edge of the view. */
function shownStep() {
  const top = state.all ? Number.parseInt(list.top?.dataset.group, 10) : Number.NaN;
  return Number.isNaN(top) ? state.step : top;
}

/** The scale of the tint, and where its values are lacking. */
function legend() {
  const place = by("tint-legend");
  const rows = list.rows;
  place.hidden = !state.tint;
  if (!state.tint) return;
  const { css, legend: bins, notes } = (tint = scale(state.tint, rows, range));
  const items = bins.map(([bin, words]) => make("span", "legend-item", make("span", `tint-swatch t-${css} b${bin}`), words));
  if (bins.length && rows.some((row) => row.turns?.length)) items.push(make("span", "legend-item", make("span", "tint-swatch by-env"), OTHERS));
  if (notes.length) items.push(make("span", "legend-note", notes.join("; ")));
  place.replaceChildren(...items);
}

/** The groups of these rows, in the order of the list. */
function grouped(rows) {
  const groups = new Map();
  for (const row of rows) {
    if (!groups.has(keyOf(row))) groups.set(keyOf(row), []);
    groups.get(keyOf(row)).push(row);
  }
  const found = [...groups.values()];
  if (inGroups()) for (const group of found) group.sort((one, other) => one.index - other.index);
  return found;
}

function spread(group) {
  const rewards = group.map((row) => row.reward).filter((reward) => reward !== null && reward !== undefined);
  return rewards.length ? Math.max(...rewards) - Math.min(...rewards) : -1;
}

const blank = (template) => {
  const fragment = by(template).content.cloneNode(true);
  return [fragment.firstElementChild, (name) => fragment.querySelector(`[data-part="${name}"]`)];
};

const many = (n, word, more) => `${n}${more ? "+" : ""} ${word}${n === 1 && !more ? "" : "s"}`;

function counted({ rows, cards, begins, ends }) {
  const more = !begins || !ends;
  return sampled ? `${many(rows, "response", more)} to ${many(cards, "prompt", more)}` : many(cards, viewer, more);
}

function draw(rows) {
  legend(); // of the rows that are there now
  return grouped(rows).map(groupCard);
}

/** After cards have come or gone. */
function changed() {
  const place = by("groups");
  const { rows, cards, begins, ends } = list.seen;
  by("rollouts-before").hidden = begins;
  const scope = state.all && oldest ? `, from step ${oldest} on; name a step to look further back` : "";
  place.removeAttribute("aria-busy");
  by("rollout-count").textContent = rows || scope ? `${counted(list.seen)}${scope}` : "";
  by("no-filters").hidden = !filtered();
  by("rollouts-waiting").hidden = !waiting;
  by("rollouts-waiting").textContent = waiting ? notSearched() : "";
  by("more-rollouts").hidden = !list.waits;
  forgetCards();
  legend();
  if (!cards) {
    for (const name of ["role", "aria-label"]) place.removeAttribute(name); // a feed has articles
    const first = sampled ? `${viewer}s yet: the first appear with the first step` : `${viewer}s yet: the first appear with the first evaluation`;
    if (!ends && !list.waits) return; // the search continues
    const scanned = ends ? `No response of ${state.all ? "this run" : "this step"} fits the filter.` : "No response fits the filter so far. “Show more” continues the search.";
    const words = filtered() ? scanned : `No ${first}.`;
    return place.replaceChildren(make("p", "empty", words));
  }
  place.setAttribute("role", "feed");
  place.setAttribute("aria-label", "Prompts with their responses");
  sameShades(place);
}

/** Draws the cards again after the values of the page have become wider, so that one shade means one value. */
function sameShades(place) {
  const before = place.dataset.shades;
  place.dataset.shades = state.tint.startsWith("part:") ? `${state.tint} ${range.low} ${range.high}` : "";
  if (before && place.dataset.shades && before !== place.dataset.shades) list.redraw();
}

/** After the view has moved. */
function moved() {
  if (byStep()) walkSteps();
  clearTimeout(saving);
  saving = setTimeout(save, 150);
}

/** The place at which one reads, for the way back to this page. */
function save() {
  const reading = list.where;
  if (reading) history.replaceState({ ...history.state, reading }, "");
}

function failed(error) {
  toast(`More rollouts could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  by("more-rollouts").hidden = false;
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
    const words = flat ? "all alike: nothing to learn from" : `rewards from ${score(Math.min(...rewards))} to ${score(Math.max(...rewards))}`;
    part("spread").append(flat ? icon("equal") : icon("chart-no-axes-column"), words);
  }
  const send = sendLink(group, { whole: true });
  if (send) part("spread").append(send);
  write(part("prompt"), first.prompt);
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

/** A text as the model wrote it, or, if somebody asks for it, with its headings, lists, tables, code and formulas. */
function write(element, text) {
  if (state.formatted) drawBlock(element, text);
  else element.textContent = text;
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
  if (state.tint) part("text").append(tinted(row, tint));
  else if (showsTokens(row)) part("text").append(tokens(row));
  else if (row.turns?.length) part("text").append(spoken(row.turns));
  else write(part("text"), row.response || "(empty response)");
  part("text").classList.toggle("muted", !row.response && !row.turns?.length);
  if (state.tint || showsTokens(row)) part("text").after(walkable(part("text"), `Response ${row.index + 1}`));
  const ends = { stop: "", length: "cut at the length limit", env: "ended by the environment", error: "sampling failed" };
  part("finish").textContent = [length(row), sampledBy(row.stretches ?? row.spans ?? []), ends[row.finish_reason]].filter(Boolean).join(" · ");
  if (row.criteria?.length) part("criteria").append(...row.criteria.map((each) => criterion(each, state.criterion === each.text)));
  else part("criteria").remove(); // because its line would separate nothing
  const turns = row.turns_apart || row.turns?.length;
  if (turns) part("finish").before(Object.assign(make("a", "small", `Open the episode: ${number(turns)} turn${turns === 1 ? "" : "s"}`), { href: `${location.pathname}/${row.id}/episode${state.formatted ? "?formatted=1" : ""}` }));
  if (part("finish").textContent) part("finish").append(" · ");
  part("finish").append(Object.assign(make("a", "", "Lineage of this reward"), { href: `/lineage/rollout/${row.id}?way=up` }));
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
  history.replaceState(null, "");
  load();
}

/** To a step: alone, or in the list of all steps. */
function goToStep(step) {
  if (!state.all) return change({ step, group: null });
  state.group = null;
  load({ start: { from: step }, key: null });
}

function walk(by_) {
  const all = steps[state.phase];
  const next = state.all && !byStep() ? undefined : all[all.indexOf(shownStep()) + by_];
  if (next !== undefined) goToStep(next);
}

/** The card before or behind the one that has the focus; if none in view has it, the first in view. */
function beside(by_) {
  const cards = list.cards;
  const inView = (card) => card.getBoundingClientRect().bottom > 0 && card.getBoundingClientRect().top < innerHeight;
  const chosen = document.activeElement.closest(".group") ?? cards.find((card) => card.dataset.group === state.group);
  return chosen && inView(chosen) ? cards[cards.indexOf(chosen) + by_] : list.top;
}

async function jump(by_) {
  if (!beside(by_)) await list.settled(); // it may be on its way
  const next = beside(by_);
  if (!next) return;
  state.group = next.dataset.group;
  writeAddress();
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "start" });
}

/** The arrow keys scroll a card that reaches beyond the view, then go to the next one. */
function pressed(event) {
  const by_ = { ArrowDown: 1, PageDown: 1, ArrowUp: -1, PageUp: -1 }[event.key];
  if (!by_ || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !event.target.matches(".group")) return;
  const { top, bottom } = event.target.getBoundingClientRect();
  if (event.key.startsWith("Arrow") && (by_ > 0 ? bottom > innerHeight : top < list.inset())) return;
  event.preventDefault();
  jump(by_);
}

by("step-slider").addEventListener("input", (event) => (by("step-shown").textContent = steps[state.phase][event.target.value] ?? "–"));
by("step-slider").addEventListener("change", (event) => goToStep(steps[state.phase][event.target.value] ?? null));
by("step-back").addEventListener("click", () => walk(-1));
by("step-forward").addEventListener("click", () => walk(1));
for (const button of document.querySelectorAll("[data-phase]")) button.addEventListener("click", () => change({ phase: button.dataset.phase, group: null }));
listen(change);
by("sort").addEventListener("change", (event) => change({ sort: event.target.value, group: null }));
by("tint").addEventListener("change", (event) => {
  state.tint = event.target.value;
  range = {};
  by("groups").dataset.shades = "";
  list.redraw();
  legend();
  writeAddress();
});
by("formatted").addEventListener("click", async () => {
  state.formatted = state.formatted ? "" : "1";
  if (state.formatted) await fetchBlocks([...new Set(list.rows.flatMap(({ prompt, response }) => [prompt, response]))]);
  list.redraw();
  show();
  writeAddress();
});
by("rollouts-before").addEventListener("click", () => list.back());
by("more-rollouts").addEventListener("click", () => list.again());
by("groups").addEventListener("keydown", pressed);
by("groups").addEventListener("click", (event) => event.target.closest("a") && save(), { capture: true });
by("rollout-news").addEventListener("click", () => {
  unseen.clear();
  change({ step: null, all: false, group: null });
});
register("j", "Next prompt", () => jump(1));
register("k", "Previous prompt", () => jump(-1));
register("t", "The prompt through training", () => {
  const chosen = list.cards.find((card) => card.dataset.group === state.group) ?? list.top;
  chosen?.querySelector(".through-training")?.click();
});
register("f", "Texts formatted, or as they were written", () => by("formatted").click());
register(".", "Next step", () => walk(1));
register(",", "Previous step", () => walk(-1));

onMessage("rollouts", ({ step, phase }) => {
  if (state.step === null && !list.seen.rows) return load(); // nothing is shown yet
  if (phase === state.phase && step === state.step && !state.all) return list.seen.rows ? freshen() : load(); // the rest of the step on the page
  if (!steps[phase]?.includes(step)) {
    steps[phase]?.push(step);
    steps[phase]?.sort((a, b) => a - b);
    unseen.add(`${phase} ${step}`);
    controls();
    news();
  }
});
/** More of the step on the page, where it is: what one reads stays. */
async function freshen() {
  try {
    await facets();
    await list.refresh();
  } catch (error) {
    toast(`The rollouts could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
}

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
history.scrollRestoration = "manual"; // a list that is fetched has no height yet
load(history.state?.reading ?? (byStep() && state.group ? { start: { from: Number.parseInt(state.group, 10) }, key: state.group } : null));
