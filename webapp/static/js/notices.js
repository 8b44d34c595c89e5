// Notices, live: the count beside the bell, and a box of the browser if the person has asked for boxes.
import { connect } from "./socket.js";
import { csrfToken } from "./http.js";

const MANY = 100; // notices that are counted at most: see webapp/notices/queries.py
const CHOSEN = "notices-in-this-browser";
const bell = document.getElementById("bell");
const held = new Map(); // the notices of each box, by its tag
let unread = Number(bell?.dataset.unread ?? 0);

/** Whether boxes are shown: "never" if the browser has none, "blocked", "off" or "on". */
export function boxes() {
  if (!("Notification" in window) || !isSecureContext) return "never";
  if (Notification.permission === "denied") return "blocked";
  return Notification.permission === "granted" && chosen() ? "on" : "off";
}

/** Asks the browser, which asks the person. Call it only after a click. */
export async function showBoxes(wanted) {
  if (wanted && (await Notification.requestPermission()) !== "granted") return;
  try {
    if (wanted) localStorage.setItem(CHOSEN, "yes");
    else localStorage.removeItem(CHOSEN);
  } catch {
    // If storage is forbidden, this is not remembered, and there are no boxes.
  }
}

function chosen() {
  try {
    return localStorage.getItem(CHOSEN) === "yes";
  } catch {
    return false;
  }
}

function count(now) {
  unread = Math.min(now, MANY);
  const text = unread >= MANY ? "99+" : String(unread);
  for (const each of document.querySelectorAll("[data-bell]")) {
    each.dataset.unread = unread;
    const number = each.querySelector("[data-bell-count]");
    number.hidden = !unread;
    number.textContent = text;
    each.title = unread ? `Notices: ${text} unread` : "Notices";
  }
}

function box(told) {
  if (boxes() !== "on" || (!document.hidden && document.hasFocus())) return;
  // one box for each tag, for any number of open tabs
  const ids = [...(held.get(told.tag) ?? []), told.id];
  held.set(told.tag, ids);
  const shown = new Notification(told.title, { body: told.text, tag: told.tag, icon: document.querySelector('link[rel="icon"]')?.href });
  shown.addEventListener("click", () => {
    shown.close();
    window.focus();
    held.delete(told.tag);
    read(ids);
    location.assign(told.href);
  });
}

function read(ids) {
  const headers = { "X-CSRFToken": csrfToken(), "X-Requested-With": "fetch" };
  fetch("/notices/read", { method: "POST", body: new URLSearchParams({ ids }), headers, keepalive: true }).catch(() => null);
}

function hear(message) {
  if (message.type === "unread") count(message.unread);
  if (message.type !== "notice") return;
  count(unread + 1);
  box(message);
  const news = document.getElementById("notices-news");
  if (news) news.hidden = false;
}

// the page of a notice may be opened in another tab; the notice is read in both cases
document.addEventListener("click", (event) => {
  const ids = event.target.closest("[data-notice]")?.dataset.notice;
  if (ids) read(ids);
});

if (bell) connect("/ws/notices", hear, { quiet: true });
