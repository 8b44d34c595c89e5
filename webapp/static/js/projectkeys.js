// The keys of a project. The actions of the task and its frame, and their keys, come from the scripts of the workbench. A field takes the
// key that is pressed in it, and Delete restores the default.
const FRAME = [
  ["submit", "Mod+Enter", "Submit, and the next task"],
  ["save", "Mod+s", "Save the draft now"],
  ["undo", "Mod+z", "Open the last submission again"],
  ["skip", "Backspace", "Skip, with a reason"],
  ["flag", "f", "Flag for the reviewers"],
  ["guidelines", "g", "Guidelines"],
].map(([action, key, label]) => ({ action, key, label }));

const part = document.querySelector("[data-keys-editor]");
const { nameOf, shown } = await import("./annotate/keymap.js");
const kind = part.closest("form").dataset.kind;
const task = (await import(`./annotate/kinds/${kind}.js`).catch(() => ({}))).keys ?? [];
const entries = [...FRAME, ...task].filter((entry, i, all) => all.findIndex((each) => each.action === entry.action) === i);
const chosen = new Map(Object.entries(JSON.parse(part.dataset.chosen)));
const rows = new Map();

const make = (name, properties) => Object.assign(document.createElement(name), properties);
const keyOf = ({ action, key }) => chosen.get(action) ?? key;

function clash(entry) {
  return entries.find((other) => other !== entry && keyOf(other) === keyOf(entry));
}

function paint() {
  for (const entry of entries) {
    const { field, hidden, error } = rows.get(entry.action);
    field.value = shown(keyOf(entry));
    field.classList.toggle("is-changed", chosen.has(entry.action));
    hidden.disabled = !chosen.has(entry.action);
    hidden.value = chosen.get(entry.action) ?? "";
    hidden.previousElementSibling.disabled = hidden.disabled;
    const other = clash(entry);
    error.textContent = other ? `Also: ${other.label}` : "";
    error.hidden = !other;
  }
}

function press(event, entry) {
  if (event.key === "Tab" || event.key === "Escape") return;
  event.preventDefault();
  event.stopPropagation();
  if (event.key === "Delete") chosen.delete(entry.action);
  else {
    const name = nameOf(event);
    if (!name) return;
    if (name === entry.key) chosen.delete(entry.action);
    else chosen.set(entry.action, name);
  }
  paint();
}

function row(entry) {
  const line = make("div", { className: "key-row" });
  const id = `key-${entry.action}`;
  const field = make("input", { id, className: "input", readOnly: true, autocomplete: "off" });
  const label = make("label", { htmlFor: id, textContent: entry.label });
  const action = make("input", { type: "hidden", name: "key-action", value: entry.action });
  const hidden = make("input", { type: "hidden", name: "key" });
  const error = make("p", { className: "error", role: "status", hidden: true });
  field.addEventListener("keydown", (event) => press(event, entry));
  line.append(label, field, action, hidden, error);
  rows.set(entry.action, { field, hidden, error });
  return line;
}

part.querySelector("[data-keys-grid]").append(...entries.map(row));
part.querySelector("[data-keys-waiting]").textContent = "Go to a field and press the key it should have; Delete restores the default.";
paint();
