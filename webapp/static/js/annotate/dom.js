// Makes elements in one expression, and stores values in this browser.

/** el("button.btn.small", { type: "button", onclick, ariaPressed: "true", data: { do: "skip" } }, "Skip"). Text is text. */
export function el(name, options = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null) continue;
    if (key === "data") Object.assign(element.dataset, value);
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list" && key !== "form") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// If this browser cannot store a value (a private window, no space left), it is kept as long as the page is open.
const memory = new Map();

/** The value that was stored under `name`, or `otherwise`. */
export function recall(name, otherwise = null) {
  try {
    return JSON.parse(memory.get(name) ?? localStorage.getItem(`work:${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Stores a value. Returns whether it outlives the page. */
export function remember(name, value) {
  memory.delete(name);
  try {
    if (value === null) localStorage.removeItem(`work:${name}`);
    else localStorage.setItem(`work:${name}`, JSON.stringify(value));
    return true;
  } catch {
    if (value !== null) memory.set(name, JSON.stringify(value));
    return value === null;
  }
}

/** The stored [name, value] pairs whose name begins with `prefix`. */
export function remembered(prefix) {
  const names = new Set(memory.keys());
  try {
    for (const name of Object.keys(localStorage)) if (name.startsWith("work:")) names.add(name.slice(5));
  } catch {
    // then nothing is stored
  }
  return [...names].filter((name) => name.startsWith(prefix)).map((name) => [name, recall(name)]).filter(([, value]) => value);
}

/** Whether two JSON values are equal, in any order of their keys. */
export function same(a, b) {
  return ordered(a) === ordered(b);
}

function ordered(value) {
  return JSON.stringify(value, (_, item) =>
    item && typeof item === "object" && !Array.isArray(item)
      ? Object.fromEntries(Object.keys(item).sort().map((key) => [key, item[key]]))
      : item,
  );
}

/** A copy of a plain object by way of JSON. Drafts are copied so that a widget cannot change a draft that is being sent. */
export const copyOf = (value) => (value === null || value === undefined ? null : JSON.parse(JSON.stringify(value)));
