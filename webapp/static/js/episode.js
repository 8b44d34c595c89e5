// An episode as a tree: turns that open and close, the result of a call below its call. The page holds at most MOST turns and asks
// for others where somebody goes; it asks for the text of a turn when the turn is opened.
import { drawBlock } from "./annotate/text.js";
import { make, number as figure } from "./format.js";
import { json } from "./http.js";
import { icon } from "./icons.js";
import { register } from "./keys.js";
import { laid } from "./laid.js";
import { toast } from "./toast.js";

const PAGE = 100;
const MOST = 300; // turns on the page: those far from what is read give way
const by = (id) => document.getElementById(id);
const section = by("episode");
const { api } = section.dataset;
const list = by("episode-turns");
const given = JSON.parse(by("episode-data").textContent);
const { total } = given;
let turns = given.items; // without gaps, in order
let at = null; // the number of the turn that the keys have come to
let hits = [];
let wanted = "";
let formatted = new URLSearchParams(location.search).has("formatted"); // with lists, tables, code and formulas
const open = new Map(); // number -> {text, next}, of the turns that are open

// ---- drawing ----

function draw() {
  const calls = new Map();
  const items = [];
  for (const turn of turns) {
    const item = element(turn);
    const call = turn.kind === "result" ? callOf(turn, calls) : null;
    if (turn.kind === "call") calls.set(turn.call || turn.number, { turn, item });
    if (call) nested(call.item).append(item);
    else items.push(item);
  }
  list.replaceChildren(...items);
  by("episode-earlier").hidden = !turns.length || turns[0].number === 0;
  by("episode-later").hidden = !turns.length || turns.at(-1).number === total - 1;
}

/** The call that a result names; without a name, the call right before it. */
function callOf(turn, calls) {
  const call = turn.call ? calls.get(turn.call) : calls.get(turn.number - 1);
  return call && !call.used && (turn.call || (call.turn.tool || turn.tool) === (turn.tool || call.turn.tool)) ? Object.assign(call, { used: true }) : null;
}

function nested(item) {
  let inner = item.querySelector(":scope > ol");
  if (!inner) item.append((inner = make("ol", "turns")));
  return inner;
}

function element(turn) {
  const item = make("li", "turn trace-step");
  Object.assign(item.dataset, { turn: turn.number, kind: turn.kind, ...(turn.author === "policy" ? { agent: "" } : {}), ...(turn.failed ? { failed: "" } : {}) });
  const head = make("button", "turn-head", icon("chevron-right"), make("span", "num turn-number", String(turn.number + 1)), make("span", "turn-title trace-title", turn.title), make("span", "turn-excerpt", turn.excerpt), facts(turn));
  head.type = "button";
  head.setAttribute("aria-expanded", "false");
  head.querySelector(".turn-excerpt").dir = "auto";
  head.addEventListener("click", () => toggle(turn.number));
  item.append(head);
  if (open.has(turn.number)) show(item, open.get(turn.number));
  return item;
}

function facts(turn) {
  const told = make("span", "turn-facts num");
  if (turn.reward !== null) told.append(make("span", "strong", `reward ${figure(turn.reward)}`), " · ");
  if (turn.seconds !== null) told.append(`${figure(turn.seconds)} s · `);
  told.append(turn.tokens ? `${figure(turn.tokens)} tokens` : `${figure(turn.size)} characters`);
  return told;
}

function show(item, { text, next }) {
  item.querySelector(":scope > .turn-body")?.remove();
  const kind = item.dataset.kind;
  const raw = kind === "call" || kind === "result";
  const body = make("div", "turn-body");
  const plain = raw || !formatted || Boolean(wanted); // the places of what is searched for are those of the text as it was written
  const words = make("div", plain ? `verbatim${raw ? " mono small" : ""}` : "");
  words.dir = "auto";
  if (plain) words.append(...marked(kind === "call" && next === null ? laid(text) : text || "(nothing)"));
  else drawBlock(words, text);
  body.append(words);
  if (next !== null) {
    const more = make("button", "btn small", "Show more of this turn");
    more.type = "button";
    more.addEventListener("click", () => read(Number(item.dataset.turn), next));
    body.append(more);
  }
  item.querySelector(":scope > .turn-head").after(body);
  item.querySelector(":scope > .turn-head").setAttribute("aria-expanded", "true");
}

/** The text with the places of what is searched for. */
function marked(text) {
  if (!wanted) return [text];
  const found = [];
  const lower = text.toLowerCase();
  const word = wanted.toLowerCase();
  let from = 0;
  for (let place = lower.indexOf(word); place >= 0 && found.length < 400; place = lower.indexOf(word, from)) {
    found.push(text.slice(from, place), make("mark", "", text.slice(place, place + word.length)));
    from = place + word.length;
  }
  return [...found, text.slice(from)];
}

// ---- what opens and closes ----

const itemOf = (number) => list.querySelector(`[data-turn="${number}"]`);

function toggle(number) {
  at = number;
  if (!open.has(number)) return read(number, 0);
  open.delete(number);
  const item = itemOf(number);
  item?.querySelector(":scope > .turn-body")?.remove();
  item?.querySelector(":scope > .turn-head").setAttribute("aria-expanded", "false");
  return undefined;
}

async function read(number, part) {
  try {
    const found = await json(`${api}/turns/${number}?part=${part}`);
    open.set(number, { text: (part ? open.get(number)?.text ?? "" : "") + found.text, next: found.next });
    const item = itemOf(number);
    if (item) show(item, open.get(number));
  } catch (error) {
    toast(`Turn ${number + 1} could not be read: ${error.message}`, { tone: "bad", id: error.id });
  }
}

// ---- which turns are on the page ----

const fetched = (start) => json(`${api}/turns?cursor=${start}&limit=${PAGE}`);

async function later() {
  const start = turns.at(-1).number + 1;
  if (start >= total) return;
  const found = await fetched(start);
  if (turns.at(-1).number + 1 !== start) return; // pressed twice, or gone elsewhere meanwhile
  turns = [...turns, ...found.items].slice(-MOST);
  kept(start - 1, draw);
}

async function earlier() {
  const start = Math.max(turns[0].number - PAGE, 0);
  const edge = turns[0].number;
  const found = await fetched(start);
  if (turns[0].number !== edge) return;
  turns = [...found.items.filter(({ number }) => number < edge), ...turns].slice(0, MOST);
  kept(edge, draw);
}

/** Draws, and leaves the turn where it is on the screen. */
function kept(number, change) {
  const before = itemOf(number)?.getBoundingClientRect().top;
  change();
  const after = itemOf(number)?.getBoundingClientRect().top;
  if (before !== undefined && after !== undefined) window.scrollBy(0, after - before);
}

async function go(number, { focus = true } = {}) {
  const to = Math.min(Math.max(number, 0), total - 1);
  if (!itemOf(to)) {
    const found = await fetched(Math.floor(to / PAGE) * PAGE);
    turns = found.items;
    draw();
  }
  at = to;
  const item = itemOf(to);
  address(to);
  item.scrollIntoView({ block: "nearest" });
  if (focus) item.querySelector(".turn-head").focus({ preventScroll: true });
}

/** A link shows the turn, and the texts in the same way. */
function address(turn) {
  const query = new URLSearchParams({ ...(turn === null ? {} : { turn: turn + 1 }), ...(formatted ? { formatted: 1 } : {}) }).toString();
  history.replaceState(null, "", query ? `?${query}` : location.pathname);
}

function format() {
  formatted = !formatted;
  by("episode-formatted").setAttribute("aria-pressed", String(formatted));
  for (const [number, body] of open) if (itemOf(number)) show(itemOf(number), body);
  address(at);
}

const step = (by_) => () => go(at === null ? turns[0].number : at + by_);

// ---- finding ----

async function search(words) {
  wanted = words.trim();
  by("episode-hits").hidden = true;
  if (!wanted) {
    hits = [];
    by("episode-told").textContent = "";
    return draw();
  }
  const found = await json(`${api}/search?${new URLSearchParams({ q: wanted })}`);
  hits = found.items.map((each) => each.number);
  by("episode-hits").hidden = !hits.length;
  const count = `${hits.length}${found.more ? "+" : ""} turn${hits.length === 1 ? "" : "s"}`;
  by("episode-told").textContent = hits.length ? `In ${count}` : "In no turn";
  draw();
  return hits.length ? hit(0) : undefined;
}

/** The next place after the turn that is read, or before it. */
async function hit(by_) {
  if (!hits.length) return;
  const here = at ?? -1;
  const next = by_ > 0 ? hits.find((each) => each > here) ?? hits[0] : by_ < 0 ? hits.findLast((each) => each < here) ?? hits.at(-1) : hits[0];
  by("episode-told").textContent = `${hits.indexOf(next) + 1} of ${hits.length}`;
  await go(next);
  if (!open.has(next)) await read(next, 0);
}

const told = (promise) => promise?.catch((error) => toast(error.message, { tone: "bad", id: error.id }));
by("episode-search").addEventListener("submit", (event) => {
  event.preventDefault();
  told(search(event.target.elements.q.value));
});
by("episode-jump").addEventListener("submit", (event) => {
  event.preventDefault();
  const number = Number.parseInt(event.target.elements.turn.value, 10);
  if (Number.isFinite(number)) told(go(number - 1));
});
for (const button of by("episode-hits").querySelectorAll("[data-hit]")) button.addEventListener("click", () => told(hit(Number(button.dataset.hit))));
by("episode-fold").addEventListener("click", () => {
  open.clear();
  draw();
});
by("episode-formatted").setAttribute("aria-pressed", String(formatted));
by("episode-formatted").addEventListener("click", format);
by("episode-later").addEventListener("click", () => told(later()));
by("episode-earlier").addEventListener("click", () => told(earlier()));
register("j", "Next turn", () => told(step(1)()));
register("k", "Previous turn", () => told(step(-1)()));
register("f", "Texts formatted, or as they were written", format);
register("n", "Next turn that has the words", () => told(hit(1)));
register("p", "Previous turn that has the words", () => told(hit(-1)));
register("/", "Find in all turns", () => by("episode-search").elements.q.focus());
draw();
const asked = new URLSearchParams(location.search);
const named = Number.parseInt(asked.get("turn"), 10);
if (Number.isFinite(named)) told(go(named - 1, { focus: false }));
else if (asked.get("q")) {
  by("episode-search").elements.q.value = asked.get("q");
  told(search(asked.get("q")));
}
