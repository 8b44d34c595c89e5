// The workbench: the frame around a task, which is the same for every kind. The part of a kind is a module in kinds/, from which the
// frame gets its widget, its value and its problems:
//
//   mount(root, { view, settings, draft, onChange, assignment, say, paint }) -> { value(), problems(), focus(), destroy(), locate?(path) }
//   keys: [{ action, key, label, run(widget), when?(settings, view) }]     begin(settings, view) -> words: the first thing to do     describe?(content, settings) -> words     after?(root, result)
//   compare?(mine, theirs) -> words: how a model's answer differs from the person's     ready?() -> a promise, resolved when its keys can
// be used
import { json } from "../http.js";
import { toast } from "../toast.js";
import { Clock, idle } from "./clock.js";
import { controls, listen, watch } from "./controls.js";
import { ask, choices } from "./dialogs.js";
import { copyOf, el } from "./dom.js";
import { Draft, leftover } from "./drafts.js";
import { keyHint, Keymap } from "./keymap.js";
import { KeySheet } from "./keysheet.js";
import { Notes } from "./notes.js";
import { Outbox } from "./outbox.js";
import { PromptPane } from "./prompt.js";
import { Problems } from "./problems.js";
import { Quarrels } from "./quarrels.js";
import { rest, stopped } from "./rest.js";
import { Sidebar } from "./sidebar.js";
import { SaveState } from "./status.js";
import { HOLD, Tasks } from "./tasks.js";

const setup = JSON.parse(document.getElementById("work-setup").textContent);
const by = (id) => document.getElementById(id);
const main = by("work-main");
const RENEW_MS = Math.min(4 * 60_000, (setup.settings.lease_minutes * 60_000) / 3);

const keymap = new Keymap(setup.keys);
const notes = new Notes(by("work-notes"));
const prompt = new PromptPane(by("work-prompt"));
const problems = new Problems(by("work-problems"));
const save = new SaveState(by("work-save"));
const sheet = new KeySheet(by("work-keys"), keymap, setup.project);
const sidebar = new Sidebar({ user: setup.user, project: setup.project, counted: setup.counted, unread: setup.unread, reopen: (id) => reopen(id),
  signedOut: () => quarrels.signedOut() });
const outbox = new Outbox({ user: setup.user, project: setup.project, done: delivered, failed: refused, changed: counts });
const tasks = new Tasks({ project: setup.project, leaving: (id) => outbox.has(id), changed: () => { counts(); heard(); } });
const quarrels = new Quarrels({
  notes, tasks, describe, remount, show, hold, advance, forgetDraft,
  user: setup.user,
  reopen: (id) => reopen(id, true),
  get current() {
    return current;
  },
});
const drafts = new Map(); // assignment id -> Draft, for every task that was changed on this page
const submitted = []; // ids, the last one at the end; Ctrl/Cmd+Z opens it again
let kind; // the module
let current = null; // { assignment, draft, widget, touched }
let busy = false;

function counts() {
  const waiting = outbox.entries.length;
  main.dataset.waiting = waiting;
  save.wait(outbox.stalled ? waiting : 0, outbox.signedOut);
  if (outbox.signedOut) quarrels.signedOut();
  // a skipped task is not done, and a task that was done before does not count twice
  const under = outbox.entries.filter((entry) => entry.kind === "submit" && !entry.again).length;
  sidebar.counts({ done: tasks.done + under, left: tasks.unanswered, known: tasks.known, halted: tasks.halted });
}

/** Tells of new guidelines with the next reply of the server, also on the last task, behind which none comes that would have them. An answer that
 * was begun keeps the number of those under which it was begun. */
async function heard() {
  const number = tasks.guidelines;
  if (!(await sidebar.guidelinesAre(number))) return;
  if (current && !current.touched) current.draft.guidelines = number;
  notes.show("guidelines", { tone: "info", title: `The guidelines changed: now version ${number}.`, actions: [["Read them", readGuidelines]], dismiss: true });
}

// ---- showing a task ----

function show(assignment, { reopened = false } = {}) {
  leaveCurrent();
  hold(false);
  const draft = drafts.get(assignment.id) ?? begin(assignment);
  const left = draft.dirty ? null : leftover(setup.user, assignment);
  const differs = left && left.revision !== draft.revision;
  current = { assignment, draft, widget: null, touched: Boolean(draft.content ?? (differs ? null : left)), reopened };
  draft.guidelines = begunUnder(current);
  notes.clear("after", "guidelines"); // it is told once, perhaps just before the next task
  problems.clear();
  prompt.draw(assignment.view);
  if (left && !differs) draft.change(left.content);
  mount(draft.content);
  explain(assignment, reopened);
  if (differs) quarrels.differs(left);
  draft.clock.run(true);
  by("work-foot").hidden = false;
  main.dataset.state = "task";
  if (draft.conflict) told("conflict", { current: draft.conflict });
  else told(draft.dirty ? "saving" : draft.revision && !reopened ? "saved" : "idle", { at: assignment.draft_at && new Date(assignment.draft_at) });
  focusTask();
  announce(reopened ? "Your submission is open again." : "Here is the task.");
}

/** The number of the guidelines under which the answer was begun. For an answer of another browser it is the number of the seat, which were the
 * newest guidelines when the person got the task. A submission that is open again has the present ones. */
function begunUnder({ assignment, draft, touched }) {
  const given = assignment.submitted_at ? 0 : assignment.guidelines;
  return (touched && (draft.guidelines || given)) || sidebar.number;
}

function begin(assignment) {
  const clock = new Clock(assignment.seconds ?? 0);
  const draft = new Draft({ assignment, user: setup.user, clock, tell: (state, details) => current?.draft === draft && told(state, details) });
  drafts.set(assignment.id, draft);
  return draft;
}

/** From here on the server's content counts, and the earlier draft is not saved any more. */
function forgetDraft(id) {
  drafts.get(id)?.close();
  drafts.delete(id);
}

function mount(content) {
  const root = el("div.work-widget-root");
  by("work-widget").replaceChildren(root);
  const widget = kind.mount(root, {
    view: current.assignment.view,
    settings: setup.settings,
    draft: copyOf(content),
    assignment: current.assignment.id,
    say: announce,
    paint: (part) => keymap.paint(part),
    onChange() {
      if (current?.widget !== widget) return;
      current.touched = true;
      problems.clear();
      current.draft.change(widget.value());
    },
  });
  current.widget = widget;
  const entries = kind.keys.filter((entry) => !entry.when || entry.when(setup.settings, current.assignment.view));
  keymap.define("task", entries.map((entry) => ({ ...entry, run: () => entry.run(widget) })));
}

function leaveCurrent() {
  if (!current) return;
  current.draft.clock.run(false);
  current.draft.flush();
  current.widget.destroy();
  current = null;
}

function explain(assignment, reopened) {
  if (assignment.sent_back) notes.show("sent_back", { tone: "warn", title: "A reviewer sent this task back", body: assignment.sent_back });
  if (reopened) notes.show("reopened", { title: "Your submission is open again.", body: "Submitting replaces it; the earlier one is kept in the history." });
  const { suggestion } = assignment.view;
  if (suggestion) notes.show("suggestion", { title: "A model's view", body: describe(suggestion), dismiss: true });
  heard();
  if (!sidebar.unread) return;
  sidebar.unread = false;
  notes.show("unread", { tone: "info", title: "This project has guidelines.", actions: [["Read them", () => sidebar.open("guidelines")]], dismiss: true });
}

function readGuidelines() {
  notes.drop("guidelines");
  sidebar.open("guidelines");
}

function describe(content) {
  return content ? (kind.describe?.(content, setup.settings) ?? JSON.stringify(content)) : "nothing yet";
}

function focusTask() {
  main.focus({ preventScroll: true });
  if (matchMedia("(max-width: 52rem)").matches) scrollTo({ top: 0 });
}

/** Shows the next task, or says why there is none. */
async function advance() {
  const next = tasks.held[0];
  if (next) return show(next);
  if (outbox.entries.length && !outbox.stalled) await outbox.run(); // its answer contains the next task
  if (tasks.held[0]) return show(tasks.held[0]);
  leaveCurrent();
  await claim();
}

async function claim() {
  main.dataset.state = "loading";
  by("work-foot").hidden = true;
  try {
    await tasks.claim();
  } catch (error) {
    return pause({ error });
  }
  if (tasks.held[0]) return show(tasks.held[0]);
  pause({ reason: tasks.reason });
}

function pause(why) {
  hold(false);
  prompt.clear();
  notes.clear("after", "guidelines");
  keymap.define("task", []);
  main.dataset.state = "rest";
  told("idle");
  by("work-widget").replaceChildren(rest(why, { again: advance, undo }));
  keymap.paint();
}

// ---- saving ----

function told(state, details = {}) {
  save.tell(state, details);
  quarrels.told(state, details);
}

function remount(content) {
  current.widget.destroy();
  mount(content);
  focusTask();
}

async function renew(back = false) {
  if (document.hidden || (!back && idle() > RENEW_MS * 2)) return; // if the person went away, the seat is given back in time
  const shown = current?.assignment;
  if (!shown || busy) return;
  const told = await json(`/api/v1/assignments/${shown.id}/renew`, { method: "POST" }).catch(() => null); // renews all tasks of this person
  if (!told || current?.assignment !== shown || busy) return;
  if (told.state === "submitted" || told.state === "skipped") return done(told.state);
  if (told.state !== "returned") return tasks.refresh(shown.id);
  const { reason } = await tasks.claim().catch(() => ({}));
  if (stopped(reason)) stop(reason);
  else quarrels.gone({ message: "Your time for this task ran out, and other people have taken its seats." });
}

/** The task on the screen was submitted or skipped in another tab. An answer that was entered here stays until the person has decided about it. */
async function done(state) {
  if (current.touched && state === "submitted") return quarrels.gone({ code: "already_submitted" });
  if (current.touched) return quarrels.gone({ message: "It was skipped in another tab or on another machine." });
  hold(true);
  tasks.drop(current.assignment.id);
  await tasks.refresh();
  toast(`The task that was open here was ${state} in another tab or on another machine.`);
  await advance();
}

// ---- submitting, skipping, coming back ----

const waits = () => setup.settings.gold_feedback || (setup.kind === "rubric" && setup.settings.stress_test);

async function submit(event) {
  if (!current || busy) return;
  const { assignment, draft, widget, touched } = current;
  performance.mark("work:asked", { startTime: event?.timeStamp ?? performance.now() });
  const open = by("work-notes").querySelector("[data-subject=conflict] button, [data-subject=gone] button");
  if (open) return open.focus(); // the person must first make a choice
  const found = touched ? widget.problems() : blank(widget);
  if (found.length) return problems.show(found, { focus: touched }); // on a focused button, the keys of the task would do nothing
  const content = copyOf(widget.value());
  const seconds = draft.clock.seconds;
  hold(true);
  draft.close();
  tasks.drop(assignment.id);
  notes.blank("after");
  submitted.push(assignment.id);
  sidebar.submitted(assignment.id, seconds);
  const body = { content, revision: draft.revision, seconds, guidelines: draft.guidelines || null, hold: HOLD };
  const answer = outbox.send({ kind: "submit", id: assignment.id, again: Boolean(assignment.submitted_at), view: assignment, body }, draft);
  if (waits()) await reveal(await answer, content);
  await advance();
  measure("work:next", "work:asked");
}

/** The problem of a task in which nothing was entered: how to begin, at the first place where something is missing. */
function blank(widget) {
  const { path = "", element = null } = widget.problems()[0] ?? {};
  return [{ path, element, message: `Nothing is answered yet. ${kind.begin(setup.settings, current.assignment.view)}` }];
}

/** Between a task that is being sent and the next one, nothing can be entered, because it would belong to neither. */
function hold(on) {
  busy = on;
  by("work-widget").inert = on;
  if (on) main.setAttribute("aria-busy", "true");
  else main.removeAttribute("aria-busy");
}

/** Measures the time until the task can be worked on; `python -m benchmarks workbench` reads it. */
function measure(name, from) {
  requestAnimationFrame(() => setTimeout(() => performance.measure(name, from)));
}

/** Shows, before the next task, whether a check was right, or the stress test of the rubric. */
async function reveal(result, content) {
  if (!result) return;
  save.tell("saved");
  const { feedback } = result;
  if (feedback?.right) toast("That agrees with the known answer.", { tone: "good" });
  if (feedback && !feedback.right) await choices(by("work-check"), expected(feedback, content));
  if (result.stress && kind.after) await stay(result);
}

/** A job matches texts by meaning later. Until then, nobody is told that a text is wrong. */
function expected({ right, expected }, content) {
  const lines = [["You said", describe(content)], ["Expected", describe(expected)]];
  return right === null ? [...lines, ["Counted", "once both are matched by meaning; other wordings count as well"]] : lines;
}

/** The kind draws the result. Resolves when the person continues; a person who opens the submission again sees that instead. */
function stay(result) {
  return new Promise((resolve) => {
    const root = el("div.work-after");
    hold(false);
    leaveCurrent();
    notes.clear("guidelines"); // the others were about the task before it was submitted
    by("work-foot").hidden = true;
    by("work-widget").replaceChildren(root);
    kind.after(root, result);
    const revise = el("button.btn", { type: "button", onclick: undo }, "Revise", keyHint("revise"));
    const next = el("button.btn.primary", { type: "button", onclick: resolve }, "Next task", keyHint("go_on"));
    root.append(el("div.row", {}, revise, el("span.push"), next));
    keymap.define("task", [
      { action: "go_on", key: "Enter", label: "Next task", run: resolve },
      { action: "revise", key: "r", label: "Open it again", run: undo },
    ]);
    main.focus({ preventScroll: true });
  });
}

function delivered(entry, result) {
  drafts.delete(entry.id);
  notes.drop("signed_out");
  tasks.take(result.queue);
  sidebar.delivered();
  before(entry, result.after?.suggestion);
  if (main.dataset.state === "rest" && tasks.held[0]) show(tasks.held[0]);
}

/** A model's answer to the previous task, if people see it afterwards. It stays during the next task. */
function before(entry, suggestion) {
  notes.drop("after");
  if (!suggestion) return;
  const mine = entry.body.content;
  const theirs = kind.compare?.(mine, suggestion) ?? `A model: ${describe(suggestion)}`;
  const actions = [["Open it again", () => reopen(entry.id)]];
  notes.show("after", { title: "The previous task", body: `You: ${describe(mine)}. ${theirs}.`, actions, dismiss: true });
}

/** The server refuses it: the task comes back with the reason, and nothing is lost. */
async function refused(entry, error) {
  drafts.delete(entry.id);
  notes.drop("after");
  if (entry.kind === "skip") return toast(`The task could not be skipped: ${error.message}`, { tone: "bad", id: error.id });
  submitted.splice(submitted.indexOf(entry.id), 1);
  sidebar.withdrawn(entry.id);
  if (stopped(error.code)) return stop(error.code);
  const fresh = await json(`/api/v1/assignments/${entry.id}`).catch(() => asSent(entry));
  if (!["claimed", undefined].includes(fresh.state)) {
    toast(`Your answer was not taken: ${error.message}`, { tone: "bad", id: error.id });
    return renew(true); // the task on the screen may be done elsewhere, too
  }
  tasks.put(fresh);
  const draft = begin(fresh);
  draft.content = copyOf(entry.body.content);
  draft.guidelines = entry.body.guidelines;
  draft.dirty = true;
  show(fresh);
  if (error.code === "conflict" && error.body?.current) {
    draft.conflict = error.body.current;
    return told("conflict", { current: error.body.current });
  }
  draft.flush();
  const at = (field) => current.widget.locate?.(field.path.replace(/^content\.?/, "")) ?? null;
  const fields = error.fields.length ? error.fields : [{ path: "", message: error.message }];
  problems.show(fields.map((field) => ({ ...field, element: at(field) })));
}

/** The person cannot submit the remaining tasks, so none of them is shown. Drafts stay as they are. */
function stop(reason) {
  tasks.held = [];
  leaveCurrent();
  by("work-foot").hidden = true;
  pause({ reason });
}

async function skip() {
  if (!current || busy) return;
  const { assignment, draft } = current;
  const answer = await ask(by("work-skip"));
  if (!answer) return;
  const reason = [answer.reason, answer.text].filter(Boolean).join(": ") || "no reason given";
  hold(true);
  draft.close();
  tasks.drop(assignment.id);
  sidebar.withdrawn(assignment.id);
  notes.blank("after");
  outbox.send({ kind: "skip", id: assignment.id, body: { reason, hold: HOLD } });
  await advance();
}

async function flag() {
  if (!current) return;
  const { id } = current.assignment;
  await ask(by("work-flag"), async ({ kind: about, text }) => {
    await json(`/api/v1/assignments/${id}/flag`, { body: { kind: about, text } });
    toast("The reviewers will see it.", { tone: "good" }); // also if the person has closed the dialog by now
  });
}

async function undo() {
  const last = submitted.at(-1);
  if (last) return reopen(last);
  await sidebar.refresh();
  const item = sidebar.mine?.find((each) => each.state === "submitted");
  if (item) return reopen(item.id);
  toast("There is no submission of yours to open again.");
}

async function reopen(id, held = false) {
  if (busy && !held) return;
  const unsent = outbox.recallEntry(id);
  const at = submitted.lastIndexOf(id);
  if (unsent?.view) {
    if (at >= 0) submitted.splice(at, 1);
    return comeBack(asSent(unsent), true);
  }
  try {
    await outbox.run(); // it may still be being sent
    const assignment = await json(`/api/v1/assignments/${id}/reopen`, { method: "POST" });
    if (at >= 0) submitted.splice(at, 1);
    comeBack(assignment, false);
  } catch (error) {
    toast(error.message, { tone: "bad", id: error.id });
  }
}

/** The task of an entry of the outbox, as it was when it was sent. */
const asSent = ({ view, body }) => ({ ...view, draft: body.content, draft_revision: body.revision, seconds: body.seconds });

function comeBack(assignment, unsent) {
  forgetDraft(assignment.id);
  notes.drop("after");
  tasks.put(assignment);
  show(assignment, { reopened: !unsent });
  if (unsent) current.draft.change(assignment.draft);
}

function turn(by) {
  const other = current && tasks.beside(current.assignment.id, by);
  if (other) show(other);
  else announce(by > 0 ? "This is the last of your tasks." : "This is the first of your tasks.");
}

// ---- keys, buttons, the page ----

function saveNow() {
  if (!current) return;
  current.draft.retry();
  if (!current.draft.dirty) told("saved");
}

/** Tells screen readers what a key has done. */
function announce(text) {
  by("work-say").textContent = text;
}

keymap.define("frame", controls({ submit, saveNow, undo, skip, flag, turn, sidebar, prompt, sheet }));
listen({ keymap, sheet, focusTask, busy: () => busy });
watch({
  drafts,
  unsent: () => outbox.unkept,
  returned: () => outbox.stalled && outbox.retry(),
  seen: () => renew(true),
  back() {
    if (main.dataset.state === "rest" && !outbox.entries.length) advance();
  },
});
setInterval(() => renew(), RENEW_MS);

// a key that is pressed before its choices are loaded would be lost, so the first task is shown after they are
const loading = import(`./kinds/${setup.kind}.js`).then(async (module) => {
  await module.ready?.().catch(() => {}); // if this fails, the widget says so
  return module;
});
if (outbox.entries.length) await outbox.run(); // left by a page that was closed before they were sent
const [module] = await Promise.all([loading, tasks.claim().catch(() => null)]);
kind = { ...module, mount: module.default };
await advance(); // asks again if that claim failed, and says why
measure("work:open", { start: 0 });
