// Keyboard shortcuts. register("s", "Stop the run", () => …) adds one, and a line on the sheet that `?` opens.
// Keys do nothing while somebody types or a dialog is open. Sequences are written with a space: "g h".

const shortcuts = new Map();
let pending = "";
let forget = 0;

/** `keys`: as KeyboardEvent.key, or two separated by a space. Returns a function that removes it. */
export function register(keys, label, action, group = "") {
  shortcuts.set(keys, { label, action, group });
  return () => shortcuts.delete(keys);
}

/** Whether keys belong to a field the person is typing in. */
export function typing(target) {
  return Boolean(target?.closest?.('input:not([type="checkbox"],[type="radio"],[type="range"]),textarea,select,[contenteditable="true"]'));
}

function draw(list) {
  const rows = [["Ctrl K", "Search pages, runs and datasets"], ...[...shortcuts].map(([keys, s]) => [keys, s.label])];
  list.replaceChildren(
    ...rows.flatMap(([keys, label]) => {
      const term = document.createElement("dt");
      term.append(
        ...keys.split(" ").map((key) => Object.assign(document.createElement("kbd"), { textContent: key })),
      );
      return [term, Object.assign(document.createElement("dd"), { textContent: label })];
    }),
  );
}

function openSheet() {
  const sheet = document.getElementById("keys");
  if (!sheet) return;
  draw(sheet.querySelector("[data-keys-list]"));
  sheet.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  const sequence = pending ? `${pending} ${event.key}` : event.key;
  const found = shortcuts.get(sequence) ?? shortcuts.get(event.key);
  clearTimeout(forget);
  pending = "";
  if (found) {
    event.preventDefault();
    found.action(event);
  } else if ([...shortcuts.keys()].some((keys) => keys.startsWith(`${event.key} `))) {
    pending = event.key;
    forget = setTimeout(() => (pending = ""), 1000);
  }
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-keys]")) openSheet();
});

const pages = { h: ["Home", "/"], d: ["Datasets", "/datasets"], p: ["Projects", "/projects"], e: ["Experiments", "/experiments"], m: ["Models", "/models"], v: ["Verifiers", "/verifiers"], s: ["Settings", "/settings/profile"] };
for (const [key, [label, path]] of Object.entries(pages))
  if (document.querySelector(`.rail a[href="${path}"]`)) register(`g ${key}`, `Go to ${label}`, () => location.assign(path));
register("?", "This list", openSheet);
