// Consolidation of one task: answers side by side, and a decision for each row. Everything works from the keyboard.
import { json } from "../http.js";
import { icon } from "../icons.js";
import { register } from "../keys.js";
import { toast } from "../toast.js";
import { ask } from "./dialogs.js";
import { el } from "./dom.js";
import { ReviewDraft } from "./reviewdraft.js";
import { drawSheet, drawTask, words } from "./reviewsheet.js";

const root = document.getElementById("review");
const part = (name) => root.querySelector(`[data-${name}]`);
const base = `/projects/${root.dataset.project}/review`;

let data = JSON.parse(document.getElementById("review-data").textContent);
let decisions = {};
let began = {}; // the decisions when the task was loaded, before anything was decided here
const draft = new ReviewDraft(root.dataset);
let focus = 0;
let history = []; // the decisions before each change; z goes back
let editing = null;
let saving = false;
const turns = []; // requests that came while another request was under way: {act, stays}
let leaving = ""; // the next page, once nothing is being sent or written

const rows = () => data.rows;
const decided = (row) => decisions[row.id] ?? null;
const left = () => rows().filter((row) => !decided(row));
const ids = () => data.people.map((person) => person.answer);
const say = (text) => (part("says").textContent = text);

function begin(task) {
  data = task;
  const known = data.resolution && !data.resolution.stale ? data.resolution.decisions : {};
  decisions = {};
  for (const row of rows()) {
    const found = known[row.id] ?? row.agreed;
    if (found) decisions[row.id] = found;
  }
  began = { ...decisions };
  const unsaved = draft.of(task);
  for (const row of rows()) if (unsaved[row.id]) decisions[row.id] = unsaved[row.id];
  history = [];
  editing = null;
  focus = Math.max(0, rows().findIndex((row) => !decided(row)));
  draw();
}

function draw() {
  const source = part("source");
  source.replaceChildren();
  if (data.resolution) {
    const [tone, name, text] = words.sources[data.resolution.source];
    source.append(el("span", { class: "chip", "data-tone": tone }, icon(name), text + (data.resolution.by ? ` · ${data.resolution.by}` : "")));
  }
  part("stale").hidden = !data.resolution?.stale;
  part("undo").hidden = !data.resolution?.can_undo;
  link("previous", data.previous);
  link("next", data.next);
  drawTask(part("task"), data);
  drawAll();
  drawRemarks();
}

function link(name, task) {
  const anchor = part(name);
  anchor.hidden = !task;
  if (task) anchor.href = `${base}/${task}`;
}

function drawAll() {
  draft.keep(data, decisions, began);
  drawSheet(part("sheet"), { data, decisions, focus, editing, act, onEdit: finishEdit, onFocus: select, sendBack });
  const open = left().length;
  part("undecided").textContent = open ? `${open} of ${rows().length} rows to decide` : rows().length === 1 ? "The row is decided" : `All ${rows().length} rows decided`;
  part("save").dataset.ready = String(!open);
  const row = part("sheet").querySelector('[aria-current="true"]');
  row?.scrollIntoView({ block: "nearest" });
  const field = part("sheet").querySelector("[data-edit]");
  if (field) field.focus();
}

function select(index) {
  focus = Math.min(Math.max(index, 0), rows().length - 1);
  editing = null;
  drawAll();
}

function remember() {
  history.push([{ ...decisions }, focus]);
}

function set(row, decision) {
  remember();
  decisions[row.id] = decision;
  editing = null;
  const next = rows().findIndex((other, index) => index > focus && !decided(other));
  if (next >= 0) focus = next;
  say(`${row.label}: ${words.actions[decision.action] ?? decision.action}. ${left().length} to decide.`);
  drawAll();
}

// the actions of keys and buttons on the focused row
function act(action, argument, index = focus) {
  focus = index;
  const row = rows()[focus];
  if (!row) return;
  if (action === "take") return take(row, argument);
  if (action === "keep") return keep(row);
  if (action === "merge") return merge(row);
  if (action === "drop") return row.type === "item" || row.drop !== null ? set(row, { action: "drop" }) : say("This row cannot be dropped.");
  if (action === "edit") {
    editing = row.id;
    return drawAll();
  }
  if (action === "value") return set(row, { action: "set", value: argument });
}

function take(row, place) {
  const person = data.people[place];
  if (!person) return;
  const has = row.type === "choice" ? person.answer in row.given : row.items.some((each) => each.answer === person.answer);
  if (!has) return say(`${person.label} has nothing here.`);
  set(row, { action: "keep", answer: person.answer });
}

function keep(row) {
  if (row.type === "item") return set(row, { action: "keep", answer: row.items[0].answer });
  const values = new Set(Object.values(row.given));
  if (values.size === 1) return set(row, { action: "keep", answer: Number(Object.keys(row.given)[0]) });
  if (row.most !== null) return set(row, { action: "merge" });
  toast("Their values differ: take one person's with 1, 2, …, or choose with e.");
}

function merge(row) {
  if (row.type === "item" || row.most !== null) return set(row, { action: "merge" });
  toast("No value has a majority: take one person's with 1, 2, …, or choose with e.");
}

function finishEdit(row, value) {
  if (value === null) {
    editing = null;
    return drawAll();
  }
  set(row, row.type === "choice" ? { action: "set", value } : { action: "edit", item: value });
}

function undoStep() {
  const last = history.pop();
  if (!last) return undoDecision();
  [decisions, focus] = last;
  editing = null;
  drawAll();
}

function rest() {
  remember();
  for (const row of left()) {
    if (2 * row.support <= data.people.length) continue;
    if (row.type === "item") decisions[row.id] = { action: row.items.length > 1 ? "merge" : "keep", answer: row.items[0].answer };
    else if (row.most !== null) decisions[row.id] = { action: "merge" };
  }
  focus = Math.max(0, rows().findIndex((row) => !decided(row)));
  if (left().length) toast(left().length === 1 ? "1 row has no majority." : `${left().length} rows have no majority.`);
  drawAll();
}

// ---- matching by hand ----

async function regroup(groups) {
  const kept = decisions;
  await call(`/api/v1/tasks/${data.task}/groups`, "PUT", { answers: ids(), groups }, (task) => {
    const place = focus;
    data = task;
    decisions = {};
    for (const row of rows()) if (kept[row.id] ?? row.agreed) decisions[row.id] = kept[row.id] ?? row.agreed;
    focus = Math.min(place, rows().length - 1);
    draw();
  });
}

function join() {
  const row = rows()[focus];
  const above = rows()[focus - 1];
  if (row?.type !== "item" || above?.type !== "item") return;
  const theirs = new Set(above.items.map((each) => each.answer));
  if (row.items.some((each) => theirs.has(each.answer))) return toast("The row above already has an item of the same person.");
  const groups = groupsOf();
  const [from, to] = [itemIndex(row), itemIndex(above)];
  groups[to] = [...groups[to], ...groups[from]];
  groups.splice(from, 1);
  focus -= 1;
  regroup(groups);
}

function split() {
  const row = rows()[focus];
  if (row?.type !== "item" || row.items.length < 2) return;
  regroup(groupsOf().flatMap((group, index) => (index === itemIndex(row) ? group.map((item) => [item]) : [group])));
}

const items = () => rows().filter((row) => row.type === "item");
const itemIndex = (row) => items().indexOf(row);
const groupsOf = () => items().map((row) => row.items.map((each) => [each.answer, each.index]));

// ---- the server ----

/** Runs `act` now, or after the request that is under way, with its result. `stays`: it is done even if the page is about to leave the task. */
function inTurn(act, stays = false) {
  if (leaving && !stays) return;
  turns.push({ act, stays });
  goOn();
}

/** The next request; if there is none, and nothing is being written, the next page. */
function goOn() {
  while (!saving && turns.length) turns.shift().act();
  if (leaving && !saving && !dialog.open) location.assign(leaving);
}

/** `failed(error)` says why instead of the usual message. */
async function call(url, method, body, then, failed = null) {
  saving = true;
  try {
    then(await json(url, { method, body }));
  } catch (error) {
    if (failed) failed(error);
    else if (error.code === "answers_changed") toast(`${error.message} Reload the page to see them.`, { tone: "warn" });
    else await refused(error);
  } finally {
    saving = false;
    goOn();
  }
}

function refused(error) {
  const row = error.fields?.map((field) => field.path.replace(/^decisions\./, "")).find((id) => rows().some((each) => each.id === id));
  if (row) select(rows().findIndex((each) => each.id === row));
  else if (error.fields?.some((field) => field.path.startsWith("decisions."))) return again();
  const what = error.fields?.map((field) => field.message).join("; ");
  toast(what ? `${error.message} ${what}` : error.message, { tone: "bad", id: error.id });
}

// the job that matches by meaning was faster than the reviewer: there are new rows, and decisions whose rows still exist stay
async function again() {
  const kept = decisions;
  begin(await json(`/api/v1/tasks/${data.task}/review`));
  for (const each of rows()) if (kept[each.id]) decisions[each.id] = kept[each.id];
  select(Math.max(0, rows().findIndex((each) => !decided(each))));
  toast("The items were matched again in the meantime. Look at the rows that are open again.", { tone: "warn" });
}

function save() {
  if (editing) part("sheet").querySelector("form.row-edit")?.requestSubmit();
  const open = left();
  if (open.length) {
    select(rows().indexOf(open[0]));
    return toast(`${open.length} ${open.length === 1 ? "row needs" : "rows need"} a decision.`, { tone: "warn" });
  }
  call(`/api/v1/tasks/${data.task}/resolution`, "PUT", { answers: ids(), decisions }, onward);
}

function leave() {
  call(`/api/v1/tasks/${data.task}/resolution`, "PUT", { answers: ids(), unresolved: true }, onward);
}

function onward(task) {
  draft.forget(data);
  turns.splice(0, turns.length, ...turns.filter(({ stays }) => stays)); // the others were about decisions of the previous task
  leaving = task.next ? `${base}/${task.next}` : base;
  goOn();
}

/** The task waits for a decision again. */
function moreToDecide() {
  const shown = part("left");
  shown.textContent = (Number(shown.textContent.replaceAll(",", "")) + 1).toLocaleString("en");
}

/** Undoes the decision that is shown now. A second press before the answer has come is about the same one, and does nothing. */
function undoDecision() {
  const at = data.resolution?.at;
  inTurn(() => (at === data.resolution?.at ? withdraw() : undefined));
}

function withdraw() {
  if (!data.resolution?.can_undo) return say("There is nothing to undo.");
  const shown = `?at=${encodeURIComponent(data.resolution.at)}`;
  call(`/api/v1/tasks/${data.task}/resolution${shown}`, "DELETE", undefined, (task) => {
    draft.forget(data);
    begin(task);
    if (!task.resolution && ids().length > 1) moreToDecide(); // single answers are not among the tasks to decide
    toast("The decision was undone.");
  });
}

// ---- words ----

const dialog = document.getElementById("words");

/** The text that the person wrote, or null. The field begins with `text`. */
async function written(title, label, button, text) {
  dialog.querySelector("[data-title]").textContent = title;
  dialog.querySelector("[data-label]").textContent = label;
  dialog.querySelector("[data-send]").textContent = button;
  const answer = ask(dialog);
  dialog.querySelector("textarea").value = text;
  const found = (await answer)?.text.trim() || null;
  if (!found) goOn();
  return found;
}

/** Sends words that a person wrote. If that fails, `again(words)` gives them back. */
function sendWords(url, body, words, then, again) {
  const failed = (error) => {
    leaving = "";
    toast(`This was not sent: ${error.message}`, { tone: "bad", id: error.id, action: { label: "Open it again", run: () => again(words) } });
  };
  inTurn(() => call(url, "POST", body, then, failed), true);
}

async function remark(kind, before = "") {
  const flagged = kind === "guidelines";
  const text = await written(flagged ? "Flag for a guideline update" : "Add a remark about this task", flagged ? "What should the guidelines say?" : "Your remark, for reviewers and managers", flagged ? "Flag" : "Send", before);
  if (!text) return;
  const told = (made) => {
    data.comments.unshift({ ...made, settled: false });
    drawRemarks();
  };
  sendWords(`/api/v1/tasks/${data.task}/comments`, { kind, text }, text, told, (words) => remark(kind, words));
}

async function sendBack(place, before = "") {
  const person = data.people[place];
  if (!person) return;
  const letters = data.responses.length > 1 ? " They may see the responses under other letters: quote a response instead." : "";
  const text = await written(`Send back to ${person.label}`, `What should they look at again? They read this with the task.${letters}`, "Send back", before);
  if (!text) return;
  const sent = () => {
    toast(`Sent back to ${person.label}. The task returns here with their new answer.`, { tone: "good" });
    setTimeout(() => onward(data), 900);
  };
  sendWords(`/api/v1/assignments/${person.assignment}/send-back`, { words: text }, text, sent, (words) => sendBack(place, words));
}

function drawRemarks() {
  const list = part("remarks");
  list.replaceChildren(...data.comments.map((each) => el("li", { class: "remark" },
    el("span", { class: "chip", "data-tone": each.kind === "guidelines" ? "warn" : "info" }, icon(each.kind === "guidelines" ? "flag" : "message-square"), each.kind === "guidelines" ? "Guidelines" : "Remark"),
    el("span", { class: "grow", dir: "auto" }, each.text),
    el("span", { class: "small muted" }, each.by, each.settled ? ", resolved" : ""))));
  if (!data.comments.length) list.append(el("li", { class: "small muted" }, "None so far."));
}

// ---- keys ----

register("ArrowDown", "Next row", () => select(focus + 1));
register("ArrowUp", "Previous row", () => select(focus - 1));
for (let place = 0; place < Math.min(9, data.people.length); place += 1)
  register(String(place + 1), `Take what ${data.people[place].label} says`, () => act("take", place));
register("k", "Keep (what they agree on, or the first wording)", () => act("keep"));
register("m", "Merge (the majority, or all wordings in one)", () => act("merge"));
register("e", "Edit, or choose another value", () => act("edit"));
register("d", "Drop", () => act("drop"));
register("j", "Says the same as the row above", () => inTurn(join));
register("s", "Split: these say different things", () => inTurn(split));
register("a", "Majority for the rest", rest);
register("x", "Leave unresolved", () => inTurn(leave));
register("z", "Undo", undoStep);
register("ArrowLeft", "Previous task", () => part("previous").hidden || part("previous").click());
register("ArrowRight", "Next task", () => part("next").hidden || part("next").click());
register("c", "Add a remark", () => remark("remark"));
register("f", "Flag for guideline update", () => remark("guidelines"));
register("b", "Send back: then 1, 2, …", () => {
  say("Send back to whom? Press their number.");
  toast("Send back to whom? Press their number.");
  const once = (event) => {
    document.removeEventListener("keydown", once, true);
    if (!/^[1-9]$/.test(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    sendBack(Number(event.key) - 1);
  };
  document.addEventListener("keydown", once, true);
});
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key !== "Enter" || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  inTurn(save);
});
part("save").addEventListener("click", () => inTurn(save));
part("rest").addEventListener("click", rest);
part("unresolved").addEventListener("click", () => inTurn(leave));
// the second click of a double click would undo the decision that the first one has brought back
part("undo").addEventListener("click", (event) => event.detail < 2 && undoDecision());
root.addEventListener("click", (event) => {
  const button = event.target.closest("[data-remark]");
  if (button) remark(button.dataset.remark);
});

begin(data);
