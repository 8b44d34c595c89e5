// The actions of keys. A key is written like KeyboardEvent.key ("s", "?", "Backspace"), with "Mod+" for Ctrl or Cmd, and with
// "Shift+" if the key itself does not show it ("Shift+ArrowUp"). Keys without Ctrl or Cmd do nothing while somebody types, in dialogs,
// and on a focused button. AltGr is not Ctrl, and keys with Alt belong to the system.
import { typing } from "../keys.js";
import { el } from "./dom.js";

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
const SIGNS = {
  Mod: isMac ? "⌘" : "Ctrl", Shift: "⇧", Enter: "↵", Backspace: "⌫", Delete: "Del", Space: "Space",
  ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", PageUp: "PgUp", PageDown: "PgDn",
};
const SPOKEN = { Mod: isMac ? "Command" : "Control", Space: "Space" };
const OWN_KEYS = "button, summary, a[href], [role=button], [role=slider], [role=separator], [role=option], select";
const CONTROL_KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Space", "Enter", "Home", "End"]);

/** The name of the pressed key, or "" if it is not ours: Alt, AltGr, dead keys, a text that is being composed. */
export function nameOf(event) {
  if (event.altKey || event.getModifierState?.("AltGraph") || event.isComposing) return "";
  let key = event.key === " " ? "Space" : event.key;
  if (["Control", "Meta", "Shift", "Dead", "Process", "Unidentified", "CapsLock"].includes(key)) return "";
  // letters and digits of layouts without Latin letters, and the digits that need Shift on a French keyboard
  if (/^Key[A-Z]$/.test(event.code) && !/^[\x20-\x7e]$/.test(key)) key = event.code.slice(3);
  if (/^Digit\d$/.test(event.code) && !event.shiftKey && !/^[\w?]$/.test(key)) key = event.code.slice(5);
  const letter = /^[A-Za-z]$/.test(key);
  if (letter) key = key.toLowerCase();
  const shift = event.shiftKey && (letter || key.length > 1) ? "Shift+" : "";
  return (event.ctrlKey || event.metaKey ? "Mod+" : "") + shift + key;
}

/** "Mod+Enter" -> "Ctrl ↵" */
export const shown = (key) => parts(key).map((part) => SIGNS[part] ?? (part.length === 1 ? part.toUpperCase() : part)).join(" ");

function parts(key) {
  const found = [];
  let rest = key;
  for (const prefix of ["Mod", "Shift"])
    if (rest.startsWith(`${prefix}+`) && rest.length > prefix.length + 1) {
      found.push(prefix);
      rest = rest.slice(prefix.length + 1);
    }
  return [...found, rest];
}

/** For aria-keyshortcuts: "Control+Enter". */
const spoken = (key) => parts(key).map((part) => SPOKEN[part] ?? part).join("+");

export class Keymap {
  /** `project` and `own`: {action: key}. A person's own keys replace the project's, and these replace the defaults. */
  constructor({ project = {}, own = {} } = {}) {
    Object.assign(this, { project, own, groups: new Map() });
  }

  /** Replaces the entries of a group: [{action, key, label, run, always}]; `always`: also while typing. */
  define(group, entries) {
    this.groups.set(group, entries);
    this.paint();
  }

  entries() {
    return [...this.groups.values()].flat();
  }

  keyOf(action) {
    const entry = this.entries().find((each) => each.action === action);
    return this.own[action] ?? this.project[action] ?? entry?.key ?? "";
  }

  /** The label of every [data-key-of] below `root`. */
  paint(root = document) {
    for (const hint of root.querySelectorAll("[data-key-of]")) {
      const key = this.keyOf(hint.dataset.keyOf);
      hint.textContent = key ? shown(key) : "";
      hint.hidden = !key;
      const button = hint.closest("button, label");
      const control = button?.control ?? button;
      if (control && key) control.setAttribute("aria-keyshortcuts", spoken(key));
    }
  }

  /** The entry for this key press, if it may act now. The keys of the task come before those of the frame. */
  find(event) {
    const name = nameOf(event);
    if (!name || document.querySelector("dialog[open]")) return null;
    const entry = [...this.entries()].reverse().find((each) => this.keyOf(each.action) === name);
    if (!entry || (event.repeat && !entry.repeats)) return null;
    if (typing(event.target)) return entry.always && name.startsWith("Mod+") ? entry : null;
    if (name.startsWith("Mod+")) return entry;
    if (event.target.closest?.(OWN_KEYS) || event.target.dataset?.picking === name) return null;
    const onControl = event.target.matches?.("input") || event.target.dataset?.arrows !== undefined;
    return onControl && CONTROL_KEYS.has(name.replace("Shift+", "")) ? null : entry;
  }

  /** Actions that share a key with another one: {action: the other's label}. */
  clashes() {
    const found = {};
    const all = this.entries();
    for (const entry of all) {
      const other = all.find((each) => each !== entry && this.keyOf(each.action) === this.keyOf(entry.action));
      if (other && this.keyOf(entry.action)) found[entry.action] = other.label;
    }
    return found;
  }
}

/** A <kbd> with the current key of an action. Screen readers read aria-keyshortcuts, and not this as well. */
export const keyHint = (action) => el("kbd", { data: { keyOf: action }, ariaHidden: "true" });
