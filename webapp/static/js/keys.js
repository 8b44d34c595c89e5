// Keyboard shortcuts. register("s", "Stop the run", () => …) adds one, and a line on the sheet that `?` opens. Keys do nothing while
// somebody types or a dialog is open. Sequences are written with a space: "g h". A key of a page has only one meaning: a key that is
// taken, or with which a sequence begins, is refused.
import { show } from "./dialogs.js";

const EVERYWHERE = "Everywhere";
const shortcuts = new Map();
let pending = "";
let forget = 0;

const first = (keys) => keys.split(" ")[0];
const sequence = (keys) => keys.includes(" ");

/** `keys`: as KeyboardEvent.key, or two separated by a space. Returns a function that removes it. Throws if the keys mean
 *  something else already, here or in the navigation. */
export function register(keys, label, action, group = "This page") {
  const other = [...shortcuts.keys()].find((each) => each === keys || (sequence(each) !== sequence(keys) && first(each) === first(keys)));
  if (other) throw new Error(`the key ${keys} (${label}) is taken: ${other} is “${shortcuts.get(other).label}”`);
  shortcuts.set(keys, { label, action, group });
  return () => shortcuts.delete(keys);
}

/** Whether keys belong to a field in which the person is typing. A field of a dialog that was just closed may still have the focus. */
export function typing(target) {
  return !target?.closest?.("dialog:not([open])") && Boolean(target?.closest?.('input:not([type="checkbox"],[type="radio"],[type="range"]),textarea,select,[contenteditable="true"]'));
}

/** Draws the page's own keys first, then those of every page. */
function draw(list) {
  const listed = [...shortcuts].map(([keys, { label, group }]) => ({ keys, label, group }));
  listed.push({ keys: "Ctrl K", label: "Search pages, runs and datasets", group: EVERYWHERE });
  const groups = grouped(listed);
  const names = [...groups.keys()].sort((one, two) => (one === EVERYWHERE) - (two === EVERYWHERE));
  list.replaceChildren(...names.flatMap((name) => [heading(name), ...groups.get(name).flatMap(line)]));
}

function grouped(listed) {
  const found = new Map();
  for (const each of listed) found.set(each.group, [...(found.get(each.group) ?? []), each]);
  return found;
}

const heading = (name) => Object.assign(document.createElement("dt"), { className: "keys-group label", textContent: name });

function line({ keys, label }) {
  const term = document.createElement("dt");
  term.append(...keys.split(" ").map((key) => Object.assign(document.createElement("kbd"), { textContent: key })));
  return [term, Object.assign(document.createElement("dd"), { textContent: label })];
}

function openSheet() {
  const sheet = document.getElementById("keys");
  if (!sheet) return;
  draw(sheet.querySelector("[data-keys-list]"));
  show(sheet);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  const pressed = pending ? `${pending} ${event.key}` : event.key;
  const began = pending;
  const found = shortcuts.get(pressed);
  clearTimeout(forget);
  pending = "";
  if (found) {
    event.preventDefault();
    found.action(event);
  } else if (!began && [...shortcuts.keys()].some((keys) => keys.startsWith(`${event.key} `))) {
    pending = event.key;
    forget = setTimeout(() => (pending = ""), 1000);
  }
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-keys]")) openSheet();
});

const pages = { h: ["Home", "/"], d: ["Datasets", "/datasets"], p: ["Projects", "/projects"], e: ["Experiments", "/experiments"], m: ["Models", "/models"], t: ["Try it", "/try"], v: ["Verifiers", "/verifiers"], s: ["Settings", "/settings/profile"] };
for (const [key, [label, path]] of Object.entries(pages))
  if (document.querySelector(`.rail a[href="${path}"]`)) register(`g ${key}`, `Go to ${label}`, () => location.assign(path), EVERYWHERE);
register("?", "Keyboard shortcuts", openSheet, EVERYWHERE);
