// The command palette, Ctrl/Cmd+K: pages and actions of this page at once, then runs, projects and datasets from /search.json.
// A page adds an action with offer("Stop this run", () => …).
import { show } from "./dialogs.js";
import { icon } from "./icons.js";
import { json } from "./http.js";

const dialog = document.getElementById("palette");
const actions = [];
const shapes = { page: () => icon("arrow-right"), run: () => icon("activity"), project: () => icon("messages-square"), dataset: () => icon("database"), judge: () => icon("scale"), model: () => icon("box"), report: () => icon("file-text"), action: () => icon("zap") };
let results = [];
let chosen = 0;
let request = null;
let delay = 0;

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
  const list = dialog.querySelector("#palette-list");
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
  if (!items.length) nodes.push(Object.assign(document.createElement("p"), { className: "palette-none", textContent: "Nothing found." }));
  list.replaceChildren(...nodes);
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

async function search(query) {
  const here = [...actions, ...pages()].filter((item) => matches(query, item.label));
  draw(here);
  request?.abort();
  request = new AbortController();
  try {
    const found = await json(`/search.json?q=${encodeURIComponent(query)}`, { signal: request.signal });
    const at = results[chosen];
    draw([...here, ...found.items]);
    choose(Math.max(0, results.indexOf(at)));
  } catch (error) {
    if (error.name !== "AbortError") draw(here); // pages are still offered while the server does not answer
  }
}

export function open() {
  if (!dialog || dialog.open) return;
  show(dialog);
  const input = dialog.querySelector("input");
  input.value = "";
  search("");
}

if (dialog) {
  const input = dialog.querySelector("input");
  input.addEventListener("input", () => {
    clearTimeout(delay);
    delay = setTimeout(() => search(input.value.trim()), 80);
  });
  dialog.addEventListener("keydown", (event) => {
    if (!dialog.open) return; // the field may have the focus for a moment after it was closed
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter") run(chosen, event.metaKey || event.ctrlKey);
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
