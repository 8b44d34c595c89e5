// Notes that people write on tokens of a response: underlined in the text, with the note below it. A note is bound to numbers of tokens and
// quotes them; where other tokens stand by now it marks nothing and says so.
import { block } from "./annotate/text.js";
import { make } from "./format.js";
import { json } from "./http.js";
import { icon } from "./icons.js";
import { api, onMessage, run } from "./run.js";
import { toast } from "./toast.js";
import "./toolong.js";

const PAGE = 200;
const MOST = 2_000; // notes of a step
const MAX_TEXT = 4_000;
const address = `${api}/rollouts/notes`;
const asked = new URLSearchParams(location.search).get("note"); // read before the page writes its address again

let known = new Map(); // place of a response -> its notes, oldest first
let shown = null; // step and phase of the page
const cards = new Map(); // place -> {row, text, list}
let open = null; // the one form: {place, start, end, note, form, words, focused}
let rebuild = () => {};
let found = !asked;
/** The scroll of the page is left to the note that the address names. */
export const leads = () => !found;

const placeOf = ({ step, phase, group, index }) => `${phase} ${step} ${group} ${index}`;
const quoteOf = (row, start, end) => (end <= (row.tokens?.length ?? 0) ? row.tokens.slice(start, end).join("") : null);
const holds = (row, note) => quoteOf(row, note.start, note.end) === note.quote;
const notesOf = (row) => known.get(placeOf(row)) ?? [];

/** Loads the notes of a step; with `step` null those of the whole run. `draw(row, card)` draws the card of a response again. */
export async function fetchNotes(step, phase, draw) {
  shown = { step, phase };
  rebuild = draw;
  const wanted = new URLSearchParams({ phase, limit: PAGE, ...(step === null ? {} : { step }) });
  const items = [];
  let cursor = "";
  do {
    const page = await json(`${address}?${wanted}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor && items.length < MOST);
  if (shown.step !== step || shown.phase !== phase) return; // an answer to an earlier choice
  known = new Map();
  for (const note of items.reverse()) known.set(placeOf(note), [...(known.get(placeOf(note)) ?? []), note]);
}

/** After cards have left the page. */
export function forgetCards() {
  for (const [place, { card }] of cards) if (!card.isConnected) cards.delete(place);
}

/** Whether a response is drawn token by token: it has a note, or somebody is about to write one. */
export const showsTokens = (row) => Boolean(row.tokens?.length) && (notesOf(row).length > 0 || open?.place === placeOf(row));

/** Notes and their button for the card of a response, whose text is `text`. */
export function attach(card, text, row) {
  const place = placeOf(row);
  const list = make("div", "token-notes");
  card.append(list);
  cards.set(place, { row, card, text, list, chosen: null });
  const mine = cards.get(place);
  text.addEventListener("tokens:chosen", ({ detail }) => {
    mine.chosen = detail;
    paint(mine);
    list.querySelector(".note-add")?.replaceChildren(icon("message-square"), "Note on the chosen tokens");
  });
  text.addEventListener("tokens:note", () => write(mine));
  draw(mine);
}

function draw(mine) {
  const { row, list } = mine;
  const items = notesOf(row).map((note) => (open?.note?.id === note.id ? open.form : item(mine, note)));
  if (open?.place === placeOf(row) && !items.includes(open.form)) items.push(open.form);
  else if (run.may_write && row.tokens?.length) items.push(addButton(mine));
  list.replaceChildren(...items);
  if (items.includes(open?.form) && open.focused) open.words.focus({ preventScroll: true });
  paint(mine);
  arrive(mine);
}

function addButton(mine) {
  const button = make("button", "btn small ghost note-add", icon("message-square"), "Note");
  button.type = "button";
  button.setAttribute("aria-label", `Note on tokens of response ${mine.row.index + 1}`);
  button.addEventListener("click", () => write(mine));
  return button;
}

/** Underlines what notes are about, and marks what is chosen. */
function paint({ row, text, chosen }) {
  const spans = text.querySelectorAll("[data-token]");
  const notes = notesOf(row).filter((note) => holds(row, note));
  const about = open?.place === placeOf(row) && open.end ? open : chosen;
  for (const [i, span] of spans.entries()) {
    const within = ({ start, end }) => start <= i && i < end;
    span.classList.toggle("has-note", notes.some(within));
    span.classList.toggle("is-chosen", Boolean(about && within(about)));
  }
}

function item(mine, note) {
  const { row, text } = mine;
  const element = make("article", "token-note");
  element.id = `note-${note.id}`;
  element.tabIndex = -1;
  const there = holds(row, note);
  const quote = make(there ? "button" : "p", there ? "link note-quote" : "note-quote", `“${note.quote.trim()}”`);
  if (there) {
    quote.type = "button";
    quote.title = "Show where";
    quote.addEventListener("click", () => text.querySelector(`[data-token="${note.start}"]`)?.scrollIntoView({ block: "center" }));
  }
  element.append(quote);
  if (!there) element.append(make("p", "note-moved", icon("triangle-alert"), "Other tokens are at this place now, because the response was sampled again."));
  element.append(block(make("div", "part-words"), note.text), foot(mine, note));
  const light = (on) => {
    for (let i = note.start; i < note.end; i++) text.querySelector(`[data-token="${i}"]`)?.classList.toggle("is-noted", on && there);
  };
  for (const [event, on] of [["pointerenter", true], ["pointerleave", false], ["focusin", true], ["focusout", false]]) element.addEventListener(event, () => light(on));
  return element;
}

function foot(mine, note) {
  const time = make("time", "");
  time.dateTime = note.created_at;
  time.dataset.ago = "";
  const link = make("a", "", "Link");
  link.href = note.url;
  link.setAttribute("aria-label", `Link to the note of ${note.author || "an erased account"}`);
  const line = make("footer", "tiny muted note-foot in-text", note.author || "an erased account", " · ", time, note.changed_at ? " · changed" : "", " · ", link);
  const button = (words, action) => {
    const made = make("button", "link", words);
    made.type = "button";
    made.addEventListener("click", () => action(made));
    line.append(" · ", made);
  };
  if (note.may_change) button("Edit", () => edit(mine, note));
  if (note.may_delete) button("Delete", (made) => confirm(mine, note, made));
  return line;
}

function confirm(mine, note, button) {
  const yes = make("button", "link bad", "Delete this note");
  const no = make("button", "link", "Keep it");
  for (const each of [yes, no]) each.type = "button";
  no.addEventListener("click", () => draw(mine));
  yes.addEventListener("click", async () => {
    yes.disabled = true;
    try {
      await json(`${address}/${note.id}`, { method: "DELETE" });
    } catch (error) {
      if (error.status !== 404) toast(`The note was not deleted: ${error.message}`, { tone: "bad", id: error.id });
    }
    await refresh();
  });
  button.replaceWith(yes, " · ", no);
  yes.focus();
}

/** Opens the form for what is chosen. A response that stands there as plain text is first drawn token by token. */
function write(mine) {
  const { row, chosen } = mine;
  if (!run.may_write || busy(row)) return;
  if (!mine.text.querySelector("[data-token]")) {
    open = { place: placeOf(row), start: 0, end: 0, form: hint(), words: { focus() {} } };
    return rebuild(row, mine.card);
  }
  if (!chosen) return toast("Choose tokens first: with the pointer, or with Shift and the arrow keys.");
  begin(mine, { ...chosen, quote: quoteOf(row, chosen.start, chosen.end), key: crypto.randomUUID() });
}

/** Stands where the form will be, until tokens are chosen. */
function hint() {
  const cancel = make("button", "btn small", "Cancel");
  cancel.type = "button";
  cancel.addEventListener("click", close);
  const form = make("div", "note-form", make("p", "small", "Choose the tokens with the pointer, or with Shift and the arrow keys; then press Enter or "), cancel);
  const on = make("button", "btn small primary", "Write the note");
  on.type = "button";
  on.addEventListener("click", () => {
    const mine = cards.get(open.place);
    if (!mine.chosen) return toast("Choose tokens first.");
    begin(mine, { ...mine.chosen, quote: quoteOf(mine.row, mine.chosen.start, mine.chosen.end), key: crypto.randomUUID() });
  });
  cancel.before(on);
  return form;
}

const edit = (mine, note) => !busy(mine.row) && begin(mine, { start: note.start, end: note.end, quote: note.quote, note, revision: note.revision });

/** Words that were not saved are not thrown away for another note. */
function busy(row) {
  const unsaved = open?.words.value?.trim() && open.words.value !== (open.note?.text ?? "");
  if (unsaved && (open.place !== placeOf(row) || open.note)) {
    toast("Save or cancel the note that you are writing first.");
    open.words.focus();
  }
  return Boolean(unsaved && (open.place !== placeOf(row) || open.note));
}

function begin(mine, about) {
  const before = open && cards.get(open.place);
  open = { place: placeOf(mine.row), ...about, ...form(about), focused: true };
  if (before && before !== mine) draw(before);
  draw(mine);
  open.words.focus();
}

function form({ quote, note }) {
  const words = make("textarea", "textarea");
  Object.assign(words, { value: note?.text ?? "", rows: 3, required: true });
  words.dataset.most = MAX_TEXT;
  words.setAttribute("aria-label", `Note on “${quote.trim().slice(0, 60)}”`);
  const save = make("button", "btn small primary", note ? "Save the change" : "Save the note");
  const cancel = make("button", "btn small", "Cancel");
  cancel.type = "button";
  cancel.addEventListener("click", close);
  const error = make("p", "error");
  error.setAttribute("role", "alert");
  const row = make("div", "row gap-2", save, cancel, make("span", "tiny muted", "Markdown. Ctrl+Enter saves, Escape cancels."));
  const made = make("form", "note-form", make("p", "note-quote", `“${quote.trim()}”`), words, error, row);
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    send(save, error);
  });
  words.addEventListener("focus", () => open && (open.focused = true));
  words.addEventListener("blur", () => open && words.isConnected && (open.focused = false));
  words.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) made.requestSubmit();
  });
  return { form: made, words };
}

async function send(save, error) {
  if (save.disabled) return; // a second press while the first is on its way
  const mine = open;
  const [row, text] = [cards.get(mine.place)?.row, mine.words.value];
  save.disabled = true;
  error.textContent = "";
  try {
    if (mine.note) await json(`${address}/${mine.note.id}`, { method: "PATCH", body: { text, revision: mine.revision } });
    else await json(address, { body: { ...placeAsFields(row), start: mine.start, end: mine.end, quote: mine.quote, text }, headers: { "Idempotency-Key": mine.key } });
  } catch (problem) {
    save.disabled = false;
    error.textContent = problem.message;
    if (problem.code === "note_changed") {
      error.textContent += ` It is now: “${problem.body.text}”. Save again to replace it.`;
      mine.revision = problem.body.revision;
    }
    return;
  }
  if (open === mine) open = null;
  const card = cards.get(mine.place);
  if (card) card.chosen = null;
  await refresh();
  card?.text.focus({ preventScroll: true });
}

const placeAsFields = ({ step, phase, group, index }) => ({ step, phase, group, index });

function close() {
  const mine = open && cards.get(open.place);
  open = null;
  if (!mine) return;
  mine.chosen = null;
  if (!notesOf(mine.row).length) rebuild(mine.row, mine.card);
  else draw(mine);
}

/** Draws the notes of the page again, in place: the texts stay where they are. */
async function refresh() {
  try {
    await fetchNotes(shown.step, shown.phase, rebuild);
  } catch (error) {
    return toast(`The notes could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
  for (const mine of [...cards.values()]) {
    if (showsTokens(mine.row) && !mine.text.querySelector("[data-token]")) rebuild(mine.row, mine.card);
    else draw(mine);
  }
}

/** To the note that the address names, once. */
function arrive({ list }) {
  if (found) return;
  const note = list.querySelector(`#note-${CSS.escape(asked)}`);
  if (!note) return;
  found = true;
  setTimeout(() => {
    note.classList.add("is-asked");
    note.focus({ preventScroll: true });
    note.scrollIntoView({ block: "center" });
  });
}

onMessage("notes", ({ step, phase }) => {
  if (shown && phase === shown.phase && (shown.step === null || shown.step === step)) refresh();
});
addEventListener("beforeunload", (event) => {
  if (open?.words.value?.trim() && open.words.value !== (open.note?.text ?? "")) event.preventDefault();
});
