// Tables in which people compare. <table class="table" data-table>:
//   <th data-sort="text|number">   its words become a sort button; cells may carry data-value
//   <tr data-href="…">             Enter or a click opens it; j/k and the arrows move between rows
//   <tr data-follows>              belongs to the row before it and moves with that row
//   [data-table-copy="csv|md"]     a button inside the same .card or .section copies what is shown
import { copy } from "./copy.js";
import { csv } from "./csv.js";
import { toast } from "./toast.js";

const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const value = (cell) => cell?.dataset.value ?? cell?.textContent.trim() ?? "";

/** Rows in the order of one column. Missing values stay last in both directions. */
export function sorted(rows, column, kind, descending) {
  const missing = (text) => text === "" || text === "–" || (kind === "number" && Number.isNaN(Number(text)));
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a.cells[column]), value(b.cells[column])];
    if (missing(x) || missing(y)) return missing(x) - missing(y);
    const by = kind === "number" ? Number(x) - Number(y) : order.compare(x, y);
    return descending ? -by : by;
  });
}

const leader = (row) => ("follows" in row.dataset ? leader(row.previousElementSibling) : row);

const orders = new Map(); // id of a table -> the column and direction that somebody chose, for when it is loaded again

function sortBy(head, button) {
  const descending = head.getAttribute("aria-sort") === (head.dataset.sort === "number" ? "none" : "ascending");
  const down = head.getAttribute("aria-sort") === "descending" ? false : descending;
  const { id } = head.closest("table");
  if (id) orders.set(id, { column: head.cellIndex, down });
  arrange(head, down);
  button.focus();
}

function arrange(head, down) {
  const table = head.closest("table");
  for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  for (const body of table.tBodies) {
    const groups = Map.groupBy(body.rows, leader);
    for (const row of sorted(groups.keys(), head.cellIndex, head.dataset.sort, down)) body.append(...groups.get(row));
  }
}

function prepare(table) {
  if (table.dataset.ready) return;
  table.dataset.ready = "1";
  for (const head of table.querySelectorAll("thead [data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    if (!head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sortBy(head, button));
  }
  const chosen = orders.get(table.id);
  const head = chosen && table.tHead.rows[0].cells[chosen.column];
  if (head?.dataset.sort) arrange(head, chosen.down);
  const first = table.querySelector("tbody tr[data-href]");
  if (first) first.tabIndex = 0;
}

function open(row, event) {
  if (event.metaKey || event.ctrlKey) window.open(row.dataset.href);
  else location.assign(row.dataset.href);
}

function move(row, step) {
  const rows = [...row.closest("table").querySelectorAll("tbody tr[data-href]")];
  const next = rows[rows.indexOf(row) + step];
  if (!next) return;
  row.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

/** The table as text: `kind` is "csv" or "md". Hidden columns, and columns whose head is empty (buttons), are left out. */
export function asText(table, kind) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const shown = (cell) => cell.textContent.trim() && getComputedStyle(cell).display !== "none";
  const keep = [...table.tHead.rows[0].cells].filter(shown).map((cell) => cell.cellIndex);
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => row.cells.length === heads.length);
  const cells = rows.map((row) => keep.map((index) => row.cells[index].textContent.trim().replace(/\s+/g, " ")));
  const lines = [keep.map((index) => heads[index]), ...cells];
  if (kind === "md") {
    const line = (parts) => `| ${parts.map((part) => part.replaceAll("|", "\\|")).join(" | ")} |`;
    return [line(lines[0]), line(keep.map(() => "---")), ...lines.slice(1).map(line)].join("\n");
  }
  return csv(lines);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-table-copy]");
  if (button) {
    const table = button.closest(".card, .section")?.querySelector("table");
    if (table && (await copy(asText(table, button.dataset.tableCopy)))) {
      const rows = table.tBodies[0].querySelectorAll(":scope > tr:not([data-follows])").length;
      toast(`Copied ${rows} row${rows === 1 ? "" : "s"}`, { tone: "good" });
    }
    return;
  }
  const row = event.target.closest("tr[data-href]");
  if (row && !event.target.closest("a, button, input, label, select, .clamp.is-long") && !String(getSelection())) open(row, event);
});
document.addEventListener("keydown", (event) => {
  const row = event.target.closest?.("tr[data-href]");
  if (!row || event.target !== row) return;
  const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };
  if (event.key === "Enter") open(row, event);
  else if (event.key in steps) move(row, steps[event.key]);
  else return;
  event.preventDefault();
});
const all = () => document.querySelectorAll("table[data-table]").forEach(prepare);
document.addEventListener("htmx:afterSettle", all);
all();
