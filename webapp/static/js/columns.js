// Chooses the shown columns of a table. This browser remembers them.
//   <span data-columns="NAME"></span>   becomes a menu of the columns of <table data-columns-of="NAME">
//   <th data-keep>                      is always shown, like a column whose head has no words
import { icon } from "./icons.js";

const key = (name) => `columns:${name}`;
const sheets = new Map(); // one style sheet for each table, so that it applies to later rows as well

function hidden(name) {
  try {
    return new Set(JSON.parse(localStorage.getItem(key(name))) ?? []);
  } catch {
    return new Set(); // storage is forbidden or broken: everything is shown
  }
}

function remember(name, off) {
  try {
    localStorage.setItem(key(name), JSON.stringify([...off]));
  } catch {
    // the choice then lasts as long as the page
  }
}

function apply(table, name, off) {
  const cells = [...table.tHead.rows[0].cells].filter((cell) => off.has(cell.textContent.trim()));
  const selector = (cell) => `[data-columns-of="${name}"] > * > tr > :nth-child(${cell.cellIndex + 1})`;
  if (!sheets.has(name)) {
    sheets.set(name, new CSSStyleSheet());
    document.adoptedStyleSheets.push(sheets.get(name));
  }
  sheets.get(name).replaceSync(cells.map((cell) => `${selector(cell)} { display: none }`).join("\n"));
}

function item(words, shown, change) {
  const label = document.createElement("label");
  const box = document.createElement("input");
  label.className = "menu-item";
  Object.assign(box, { type: "checkbox", checked: shown });
  box.addEventListener("change", () => change(box.checked));
  label.append(box, words);
  return label;
}

function build(place) {
  const name = place.dataset.columns;
  const table = document.querySelector(`table[data-columns-of="${name}"]`);
  if (!table || place.firstChild) return;
  const off = hidden(name);
  const change = (words) => (shown) => {
    if (shown) off.delete(words);
    else off.add(words);
    remember(name, off);
    apply(table, name, off);
  };
  const heads = [...table.tHead.rows[0].cells].filter((cell) => !("keep" in cell.dataset));
  const words = heads.map((cell) => cell.textContent.trim()).filter(Boolean);
  const menu = Object.assign(document.createElement("details"), { className: "menu" });
  const summary = Object.assign(document.createElement("summary"), { className: place.dataset.look ?? "btn" });
  const list = Object.assign(document.createElement("div"), { className: "menu-list" });
  menu.dataset.menu = "";
  summary.append(icon("columns-3"), "Columns");
  list.append(...words.map((each) => item(each, !off.has(each), change(each))));
  menu.append(summary, list);
  place.append(menu);
  apply(table, name, off);
}

document.querySelectorAll("[data-columns]").forEach(build);
