// <time data-ago datetime="…"> shows "3 minutes ago" and is kept up to date; the exact moment is its title. The page is observed, so
// times that arrive later (HTMX, websockets) need no call.

const words = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const units = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];

/** "just now", "3 minutes ago", "in 2 days". `moment` is a Date, `now` for tests. */
export function ago(moment, now = Date.now()) {
  const seconds = (moment.getTime() - now) / 1000;
  for (const [unit, size] of units)
    if (Math.abs(seconds) >= size) return words.format(Math.trunc(seconds / size), unit);
  return seconds > 5 ? "in a moment" : Math.abs(seconds) < 10 ? "just now" : `${Math.round(-seconds)} seconds ago`;
}

/** 3.2 -> "3 s", 252 -> "4:12 min", 7500 -> "2 h 05 min"; null -> "–". The same words as the template filter. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.round(seconds);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)} min`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}

/** 40 -> "about a minute", 340 -> "about 6 min": the same coarse words as `estimates.about` of the server. */
export function about(seconds) {
  const [minute, hour, day] = [60, 3600, 86400];
  if (seconds < 1.5 * minute) return "about a minute";
  if (seconds < 10 * minute) return `about ${Math.round(seconds / minute)} min`;
  if (seconds < 57.5 * minute) return `about ${5 * Math.round(seconds / (5 * minute))} min`;
  if (seconds < 1.5 * hour) return "about an hour";
  return seconds < 36 * hour ? `about ${Math.round(seconds / hour)} hours` : `about ${Math.round(seconds / day)} days`;
}

function refresh(root = document) {
  for (const element of root.querySelectorAll("time[data-ago]")) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const text = ago(moment);
    if (element.textContent !== text) element.textContent = text;
    element.title = exact.format(moment);
  }
}

let waiting = false;
const soon = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    refresh();
  });
};
new MutationObserver((changes) => {
  const arrives = (node) => node.nodeType === 1 && (node.matches("time[data-ago]") || node.querySelector("time[data-ago]"));
  // a part that is morphed keeps its elements, and their words are replaced by what the server wrote
  const isIn = (node) => (node.nodeType === 1 ? node : node.parentElement)?.closest("time[data-ago]");
  if (changes.some((change) => isIn(change.target) || [...change.addedNodes].some(arrives))) soon();
}).observe(document.body, { characterData: true, childList: true, subtree: true });
setInterval(() => document.hidden || refresh(), 10_000);
document.addEventListener("visibilitychange", () => document.hidden || refresh());
refresh();
