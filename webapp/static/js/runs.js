// The table of runs: rows change in place, new runs are announced, and nothing moves under the pointer. Chosen runs can be changed
// together. It also has stars, keys, columns and saved views; querybox.js completes the query.
import { send, show as open } from "./dialogs.js";
import { json } from "./http.js";
import { register } from "./keys.js";
import { queryBox } from "./querybox.js";
import { chooseColumns } from "./runcolumns.js";
import { groups } from "./rungroups.js";
import { follow, tick } from "./runrow.js";
import { toast } from "./toast.js";

const API = "/api/v1/runs";
const list = document.getElementById("run-list");
const DONE = { archive: "Archived", restore: "Restored", tag: "Tagged", untag: "Removed the tag from", group: "Grouped" };
Object.assign(DONE, { stop: "Asked to stop:", pause: "Asked to pause:", resume: "Resumed" });
const NOTHING = {
  stop: "Nothing to stop: none of them is under way.",
  pause: "Nothing to pause: none of them is under way.",
  resume: "Nothing to resume: none of them is paused. Resume a failed or stopped run on its own page.",
};
const runs = (n) => `${n.toLocaleString("en")} run${n === 1 ? "" : "s"}`;
const complain = (error) => toast(error.fields?.[0] ? `${error.message} ${error.fields[0].message ?? ""}` : error.message, { tone: "bad", id: error.id });

/** The choice: rows of this page, or all runs that the query finds. */
class Choice {
  constructor() {
    this.everything = 0; // the number of runs, if all that the query finds are chosen
  }

  boxes(filter = "") {
    return [...list.querySelectorAll(`input[name="ids"]${filter}`)];
  }

  ids() {
    return [...new Set(this.boxes(":checked").flatMap(idsOf))];
  }

  get size() {
    return this.everything || this.ids().length;
  }

  /** The choice in the body of an action. */
  body() {
    return this.everything ? { q: query() } : { runs: this.ids() };
  }

  set(checked) {
    this.everything = 0;
    for (const box of this.boxes()) box.checked = checked;
  }

  /** After a box was changed: a run may have boxes in several rows. All of them say the same, and no ticked box has a run that is not chosen. */
  changed(box) {
    this.everything = 0;
    const ids = new Set(idsOf(box));
    for (const other of this.boxes()) {
      const here = idsOf(other).filter((id) => ids.has(id)).length;
      if (box.checked ? here === idsOf(other).length : here) other.checked = box.checked;
    }
  }

  /** The boxes of rows that have come are as those of the groups in which their runs are. */
  came(rows) {
    const ids = new Set(this.ids());
    for (const box of rows.flatMap((row) => [...row.querySelectorAll('input[name="ids"]')])) box.checked = idsOf(box).every((id) => ids.has(id));
  }
}

/** The runs of a box: a folded row and a group have several. */
function idsOf(box) {
  return box.value.split(",").map(Number);
}

const choice = new Choice();
const query = () => new URLSearchParams(location.search).get("q") ?? document.getElementById("run-query")?.defaultValue ?? "";

function show() {
  const bar = list.querySelector("[data-bulk]");
  const size = choice.size;
  bar.hidden = !size;
  bar.querySelector("[data-chosen]").textContent = size ? `${runs(size)} chosen` : "";
  const compare = bar.querySelector('[data-act="compare"]');
  compare.disabled = size < 2;
  compare.title = compare.disabled ? "Choose two or more" : "";
  const again = bar.querySelector('[data-act="again"]'); // takes the place of Compare, which needs two runs
  if (again) compare.hidden = !(again.hidden = size !== 1);
  const page = list.querySelector("[data-choose-page]");
  const all = choice.boxes();
  if (page) {
    page.checked = all.length > 0 && all.every((box) => box.checked);
    page.indeterminate = !page.checked && all.some((box) => box.checked);
  }
  const rest = bar.querySelector("[data-all-found]");
  rest.hidden = !(page?.checked && !choice.everything && list.querySelector('.pager [rel="next"]'));
  rest.textContent = "Choose all that the query finds";
  const chosen = new Set(choice.ids());
  for (const box of all) {
    box.indeterminate = !box.checked && idsOf(box).some((id) => chosen.has(id)); // a group with some chosen runs
    box.closest("tr").toggleAttribute("data-chosen-row", box.checked);
  }
}

async function chooseEverything() {
  try {
    const found = await json(`${API}/table/count?${new URLSearchParams({ q: query() })}`);
    const most = Number(list.dataset.most);
    if (found.more || found.count > most) return toast(`The query finds more than ${runs(most)}, the most that can be changed together. Narrow the query.`, { tone: "warn" });
    choice.everything = found.count;
    show();
  } catch (error) {
    complain(error);
  }
}

const change = (action, word = "") => json(`${API}/table/actions`, { body: { action, word, ...choice.body() } });

const act = async (action) => tell(action, await change(action));

/** Says what an action has changed. */
function tell(action, change) {
  const text = `${DONE[action]} ${runs(change.changed)}`;
  if (change.refused.length) toast(change.refused.join(" "), { tone: "warn" });
  else if (!change.changed) toast(NOTHING[action] ?? "Nothing to change: all are in this state already.", { tone: "info" });
  if (!change.changed) return;
  const undo = change.id === null ? null : { label: "Undo", run: () => takeBack(change.id) };
  remember(text, change.id);
  if (["stop", "pause", "resume"].includes(action)) return toast(text, { tone: "good", action: undo });
  reload();
}

/** Loads the page again. A question that is open by now is answered first. */
function reload() {
  const question = document.querySelector("dialog[open]");
  if (question) question.addEventListener("close", reload, { once: true });
  else location.reload();
}

// the page is loaded again after a change, and then shows what was done, with an undo
const NOTE = "runs:done";
function remember(text, id) {
  sessionStorage.setItem(NOTE, JSON.stringify({ text, id }));
}
function recall() {
  const note = JSON.parse(sessionStorage.getItem(NOTE) ?? "null");
  sessionStorage.removeItem(NOTE);
  if (note) toast(note.text, { tone: "good", action: note.id === null ? null : { label: "Undo", run: () => takeBack(note.id) } });
}
async function takeBack(id) {
  try {
    const change = await json(`${API}/table/changes/${id}/undo`, { method: "POST" });
    remember(`Undone for ${runs(change.changed)}`, null);
    reload();
  } catch (error) {
    complain(error);
  }
}

/** Asks for a tag or a group. */
function askForWord(action) {
  const words = {
    tag: ["Tag the chosen runs", "Tag", "Small letters; 1 to 40 characters.", "Tag"],
    group: ["Group the chosen runs", "Group", "Leave it empty to remove them from their groups.", "Group"],
  }[action];
  const dialog = document.getElementById("word-dialog");
  const [title, label, help, button] = words;
  dialog.querySelector("h2").textContent = title;
  dialog.querySelector("label").textContent = label;
  dialog.querySelector(".help").textContent = help;
  dialog.querySelector('[type="submit"]').textContent = button;
  const off = dialog.querySelector("[data-word]");
  off.hidden = action !== "tag";
  const input = dialog.querySelector("input");
  input.value = "";
  const go = async (chosen) => {
    const sent = await send(dialog, () => change(chosen, input.value), explain(dialog));
    if (sent) tell(chosen, sent.answer);
  };
  dialog.querySelector("form").onsubmit = (event) => {
    event.preventDefault();
    go(action);
  };
  off.onclick = () => go("untag");
  problem(dialog, "");
  open(dialog);
  input.focus();
}

function problem(dialog, text) {
  const place = dialog.querySelector(".error");
  place.hidden = !text;
  place.textContent = text;
}

/** A dialog shows the reason of an error. */
const explain = (dialog) => (error) => problem(dialog, error.fields?.[0]?.message ?? error.message);

function compare() {
  if (choice.size < 2) return;
  const where = choice.everything ? { q: query() } : { ids: choice.ids().join(",") };
  location.assign(`/runs/compare?${new URLSearchParams(where)}`);
}

function csv() {
  const form = document.getElementById("csv-form");
  form.elements.ids.value = choice.everything ? "" : choice.ids().join(",");
  form.elements.q.value = query();
  form.submit();
}

function stop() {
  const dialog = document.getElementById("stop-dialog");
  dialog.querySelector("form").onsubmit = () => act("stop").catch(complain);
  open(dialog);
}

const ACTIONS = {
  compare,
  again: () => location.assign(`/runs/${choice.ids()[0]}/fork`),
  csv,
  stop,
  clear: () => {
    choice.set(false);
    show();
  },
  tag: () => askForWord("tag"),
  group: () => askForWord("group"),
  pause: () => act("pause").catch(complain),
  resume: () => act("resume").catch(complain),
  archive: () => act("archive").catch(complain),
  restore: () => act("restore").catch(complain),
};

async function star(button) {
  const starred = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", starred);
  try {
    await json(`${API}/${button.closest("tr").dataset.run}/star`, { method: "PUT", body: { starred } });
  } catch (error) {
    button.setAttribute("aria-pressed", !starred);
    complain(error);
  }
}

function saveView() {
  const dialog = document.getElementById("view-dialog");
  dialog.addEventListener("close", () => dialog.open || problem(dialog, ""));
  dialog.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = { name: dialog.querySelector("input").value, query: query(), sort: list.dataset.sort, columns: list.dataset.shown.split(","), folded: "folded" in list.dataset, group: list.dataset.group };
    const sent = await send(dialog, () => json(`${API}/table/views`, { body }), explain(dialog));
    if (!sent) return;
    const show = () => location.assign(`/experiments?view=${sent.answer.id}`);
    if (sent.lasted) show();
    else toast(`Saved the view “${body.name}”`, { tone: "good", action: { label: "Open it", run: show } });
  });
}

async function setDefault(id) {
  try {
    await json(id ? `${API}/table/views/${id}/default` : `${API}/table/default`, { method: id ? "PUT" : "DELETE" });
    location.reload();
  } catch (error) {
    complain(error);
  }
}

const here = () => document.activeElement?.closest?.("tr[data-run]") ?? list.querySelector("tr[data-run]");
function keys() {
  const row = (action) => () => {
    const found = here();
    if (found) action(found);
  };
  const writes = list.querySelector('[data-act="archive"]');
  register("/", "Go to the query", () => document.getElementById("run-query").select());
  register("j", "Next run", row((found) => found.focus()));
  register("k", "Previous run", row((found) => found.focus()));
  register(
    "x",
    "Choose this run",
    row((found) => {
      const box = found.querySelector('input[name="ids"]');
      box.checked = !box.checked;
      choice.changed(box);
      show();
    }),
  );
  register(
    "s",
    "Star this run",
    row((found) => found.querySelector("[data-star]") && star(found.querySelector("[data-star]"))),
  );
  register("c", "Compare what is chosen", compare);
  if (!writes) return;
  register("t", "Tag what is chosen", () => choice.size && ACTIONS.tag());
  register("a", "Archive what is chosen", () => choice.size && ACTIONS.archive());
}

if (list) {
  list.addEventListener("change", (event) => {
    if (event.target.matches("[data-autosubmit]")) return event.target.form.requestSubmit();
    if (event.target.matches("[data-choose-page]")) choice.set(event.target.checked);
    else if (event.target.name === "ids") choice.changed(event.target);
    else return;
    show();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.act) ACTIONS[button.dataset.act]();
    else if ("star" in button.dataset) star(button);
    else if ("allFound" in button.dataset) chooseEverything();
    else if ("default" in button.dataset) setDefault(button.dataset.default);
  });
  chooseColumns(document.querySelector("[data-columns-open]"), document.getElementById("columns-dialog"), list.dataset.shown.split(","));
  queryBox(document.getElementById("run-query"), document.getElementById("query-options"));
  groups(list, (rows) => {
    choice.came(rows);
    show();
  });
  saveView();
  keys();
  recall();
  show();
  tick(list);
  follow(list);
}
