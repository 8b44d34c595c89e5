// The field that finds the fields of a form by their labels, names, helps and choices. A field that does not match is marked with `data-out`, which
// hides it and survives when the form is drawn again; nothing is removed, so everything that was typed stays and is sent.
import { register } from "./keys.js";

const PARTS = ".card, .subgroup, .list-item, .list-end, details.advanced";

/** Call `show` when the form was drawn again, and `clear` before a field is shown that may be hidden. */
export function finder(form) {
  const place = document.getElementById("field-finder");
  const field = document.getElementById("field-find");
  const told = document.getElementById("field-found");
  if (!place) return { show: () => {}, clear: () => {} };
  const opened = new Set(); // ids of the parts that the search has opened

  const words = () => field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const main = () => form.querySelector(".run-form-main");

  function show() {
    place.hidden = !form.querySelector(".field[data-kind]");
    const wanted = place.hidden ? [] : words();
    form.classList.toggle("is-finding", wanted.length > 0);
    if (!wanted.length) return all();
    const found = { shown: [], off: [], idle: [] };
    for (const each of main().querySelectorAll(".field")) {
      const matches = wanted.every((word) => text(each).includes(word));
      each.toggleAttribute("data-out", !matches);
      if (matches) found[standing(each)].push(each);
    }
    const kept = new Set([...found.shown, ...found.off].flatMap(parts));
    for (const part of main().querySelectorAll(PARTS)) {
      part.toggleAttribute("data-out", !kept.has(part));
      if (kept.has(part) && part.tagName === "DETAILS" && !part.open) {
        part.open = true;
        opened.add(part.id);
      }
    }
    told.textContent = sentence(found);
  }

  function all() {
    for (const each of main().querySelectorAll("[data-out]")) each.removeAttribute("data-out");
    for (const id of opened) {
      const part = document.getElementById(id);
      if (part && !part.contains(document.activeElement) && !part.querySelector(".error")) part.open = false;
    }
    opened.clear();
    told.textContent = "";
  }

  function clear() {
    if (!field.value) return;
    field.value = "";
    show();
  }

  /** The parts of the form in which a field stands, from the inside. */
  function parts(each) {
    const found = [];
    for (let part = each.closest(PARTS); part; part = part.parentElement.closest(PARTS)) found.push(part);
    return found;
  }

  const text = (each) =>
    [
      (each.querySelector(".field-label, label > span:not([class])") ?? each.querySelector("label"))?.textContent,
      each.querySelector("[name]")?.name,
      ...[...each.querySelectorAll(".help")].map((help) => help.textContent),
      ...(each.dataset.kind === "choice" ? [...each.querySelectorAll("option")].map((option) => option.textContent) : []),
      ...parts(each).map((part) => part.querySelector(":scope > summary h2, :scope > .card-head h2")?.textContent),
    ]
      .join(" ")
      .toLowerCase();

  /** "shown"; "off": only because its part is switched off; "idle": without effect beside the values that are chosen. */
  function standing(each) {
    let found = "shown";
    for (let node = each.closest("[hidden]"); node && form.contains(node); node = node.parentElement.closest("[hidden]")) {
      if (!node.matches(".card-body")) return "idle";
      found = "off";
    }
    return found;
  }

  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      if (field.value) clear();
      else field.blur();
    } else if (event.key === "Enter" || event.key === "ArrowDown") {
      const first = words().length && main().querySelector(".field:not([data-out], [hidden], [hidden] *) :is(input, select, textarea):not([type=hidden])");
      if (!first) return;
      event.preventDefault();
      first.focus();
    }
  });
  register("/", "Find a field", () => field.select());
  show();
  return { show, clear };
}

const many = (count, one, more) => `${count} ${count === 1 ? one : more}`;

function sentence({ shown, off, idle }) {
  const also = [];
  if (off.length) also.push(`${many(off.length, "field", "fields")} in a part that is switched off`);
  if (idle.length) also.push(`${many(idle.length, "field", "fields")} without effect beside your other choices`);
  if (shown.length) return [many(shown.length, "field matches", "fields match"), ...also].join(", and ");
  if (also.length) return `Only ${also.join(", and ")}`;
  return "No field matches. Try one word of its label or help, or press Escape to see all fields.";
}
