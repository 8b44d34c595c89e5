// The command palette, Ctrl/Cmd+K: pages and actions of this page at once, then runs, projects and datasets from /search.json.
// A page adds an action with offer("Stop this run", () => …).
import { show } from "./dialogs.js";
import { icon } from "./icons.js";
import { json } from "./http.js";

const dialog = document.getElementById("palette");
const actions = [];
const shapes = { page: () => icon("arrow-right"), run: () => icon("activity"), project: () => icon("messages-square"), dataset: () => icon("database"), judge: () => icon("scale"), model: () => icon("box"), report: () => icon("file-text"), action: () => icon("zap") };
const PAUSE = 80; // ms after the last key, before the server is asked
let results = [];
let chosen = 0;
let request = null;
let delay = 0;
let complete = true; // whether the list has what the server finds for the text
let pressed = null; // Enter came before the list had an entry: {elsewhere}

/** Adds an action of this page. Returns a function that removes it. */
export function offer(label, action) {
  const entry = { kind: "action", label, action };
  actions.push(entry);
  return () => actions.splice(actions.indexOf(entry), 1);
}

function pages() {
  return [...document.querySelectorAll(".rail-nav a, .rail-foot a.menu-item")].map((link) => ({
    kind: "page",
    label: link.textContent.trim(),
    url: link.getAttribute("href"),
  }));
}

/** Whether the letters of `query` appear in `text` in order: "exq" finds "experiments/quick". */
export function matches(query, text) {
  let at = 0;
  const letters = text.toLowerCase();
  for (const letter of query.toLowerCase().replaceAll(" ", "")) {
    at = letters.indexOf(letter, at) + 1;
    if (!at) return false;
  }
  return true;
}

function draw(items) {
  const place = dialog.querySelector("#palette-list");
  results = items;
  chosen = 0;
  const names = { action: "On this page", page: "Pages", run: "Runs", project: "Projects", dataset: "Datasets", judge: "Judges", model: "Models", report: "Reports" };
  const nodes = [];
  let kind = "";
  items.forEach((item, index) => {
    if (item.kind !== kind) {
      kind = item.kind;
      const head = Object.assign(document.createElement("div"), { className: "palette-group", textContent: names[kind] });
      head.setAttribute("role", "presentation");
      nodes.push(head);
    }
    const option = document.createElement("div");
    option.className = "palette-option";
    option.id = `palette-${index}`;
    option.dataset.index = index;
    option.setAttribute("role", "option");
    option.append(shapes[kind](), Object.assign(document.createElement("span"), { className: "truncate", textContent: item.label }));
    if (item.note) option.append(Object.assign(document.createElement("small"), { textContent: item.note }));
    nodes.push(option);
  });
  if (!items.length) nodes.push(Object.assign(document.createElement("p"), { className: "palette-none", textContent: complete ? "Nothing found." : "Searching…" }));
  place.replaceChildren(...nodes);
  choose(0);
}

function choose(index) {
  if (!results.length) return;
  chosen = (index + results.length) % results.length;
  for (const option of dialog.querySelectorAll(".palette-option"))
    option.setAttribute("aria-selected", String(Number(option.dataset.index) === chosen));
  const current = dialog.querySelector(`#palette-${chosen}`);
  current?.scrollIntoView({ block: "nearest" });
  dialog.querySelector("input").setAttribute("aria-activedescendant", current?.id ?? "");
}

function run(index, elsewhere) {
  const item = results[index];
  if (!item) return;
  dialog.close();
  if (item.action) item.action();
  else if (elsewhere) window.open(item.url);
  else location.assign(item.url);
}

/** Shows the list for the text of the field. Entries that this page knows are there at once, so that Enter never takes an entry for an earlier text. */
function list(query, pause = 0) {
  clearTimeout(delay);
  request?.abort();
  pressed = null;
  complete = false;
  const here = [...actions, ...pages()].filter((item) => matches(query, item.label));
  draw(here);
  delay = setTimeout(() => search(query, here), pause);
}

async function search(query, here) {
  request = new AbortController();
  const found = await json(`/search.json?q=${encodeURIComponent(query)}`, { signal: request.signal }).catch((error) => error);
  if (found.name === "AbortError") return;
  complete = true;
  const at = results[chosen];
  draw([...here, ...(found.items ?? [])]); // if the server does not answer, pages are still offered
  choose(Math.max(0, results.indexOf(at)));
  if (pressed && dialog.open) run(chosen, pressed.elsewhere);
}

/** Opens the chosen entry. If the server has still to say what it finds, and nothing else is in the list, its first entry is opened later. */
function enter(elsewhere) {
  if (results.length) run(chosen, elsewhere);
  else if (!complete) pressed = { elsewhere };
}

export function open() {
  if (!dialog || dialog.open) return;
  show(dialog);
  const input = dialog.querySelector("input");
  input.value = "";
  list("");
}

if (dialog) {
  const input = dialog.querySelector("input");
  input.addEventListener("input", () => list(input.value.trim(), PAUSE));
  dialog.addEventListener("keydown", (event) => {
    if (!dialog.open) return; // the field may have the focus for a moment after it was closed
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter") enter(event.metaKey || event.ctrlKey);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", (event) => {
    const option = event.target.closest(".palette-option");
    if (option) run(Number(option.dataset.index), event.metaKey || event.ctrlKey);
    else if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("pointermove", (event) => {
    const option = event.target.closest(".palette-option");
    if (option && Number(option.dataset.index) !== chosen) choose(Number(option.dataset.index));
  });
}
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    open();
  }
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-palette]")) open();
});
if (navigator.platform.startsWith("Mac"))
  for (const key of document.querySelectorAll("[data-mod]")) key.textContent = key.textContent.replace("Ctrl ", "⌘");
