// The Log tab: the newest lines, then those that arrive. The page has at most MOST lines. Older lines are fetched on demand and replace
// newer ones, so that a page which is open for hours does not grow.
import { copy } from "./copy.js";
import { json } from "./http.js";
import { make } from "./format.js";
import { api, onBack, onMessage } from "./run.js";
import { toast } from "./toast.js";

const MOST = 1000;
const RANK = { debug: 0, info: 1, warning: 2, error: 3 };
const by = (id) => document.getElementById(id);
const box = by("log");
let lines = []; // ascending by seq, at most MOST
let paused = false;
let waiting = []; // lines that came while the log was paused or older lines were read
let older = true;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const complain = (error) => toast(`The log could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
const atEnd = () => box.scrollHeight - box.scrollTop - box.clientHeight < 24;

function fits(line) {
  const words = by("log-search").value.trim().toLowerCase();
  return RANK[line.level] >= RANK[by("log-level").value] && (!words || line.message.toLowerCase().includes(words));
}

function row(line) {
  const time = make("time", "muted", clock.format(new Date(line.time)));
  time.dateTime = line.time;
  time.title = line.time;
  const level = make("span", "log-level", line.level);
  const item = make("div", "log-line", time, make("span", "log-step muted num", line.step ? String(line.step) : ""), level, make("span", "log-message", line.message));
  item.dataset.level = line.level;
  return item;
}

function count(shown) {
  by("log-count").textContent = lines.length ? `${shown} of ${lines.length} lines${older ? ", older ones exist" : ""}` : "No lines yet: the first ones come when the job starts.";
  by("log-none").hidden = shown > 0 || !lines.length;
  by("log-older").hidden = !older || !lines.length;
}

function draw({ follow = true } = {}) {
  const shown = lines.filter(fits);
  by("log-lines").replaceChildren(...shown.map(row));
  count(shown.length);
  if (follow) box.scrollTop = box.scrollHeight;
}

function append(fresh) {
  const last = lines.at(-1)?.seq ?? 0;
  const added = fresh.filter((line) => line.seq > last);
  if (!added.length) return;
  const follow = atEnd();
  lines.push(...added);
  by("log-lines").append(...added.filter(fits).map(row));
  if (lines.length > MOST) {
    lines = lines.slice(-MOST);
    older = true;
  }
  while (by("log-lines").childElementCount > MOST) by("log-lines").firstElementChild.remove();
  count(by("log-lines").childElementCount);
  if (follow) box.scrollTop = box.scrollHeight;
}

function arrive(fresh) {
  if (!paused) return append(fresh);
  waiting = [...waiting, ...fresh].slice(-MOST);
  by("log-news").hidden = false;
  by("log-news").textContent = `${waiting.length} new line${waiting.length === 1 ? "" : "s"}`;
}

function pause(yes) {
  paused = yes;
  by("log-pause").setAttribute("aria-pressed", String(yes));
  by("log-pause").querySelector("span").textContent = yes ? "Follow" : "Pause";
  if (yes) return;
  by("log-news").hidden = true;
  const came = waiting;
  waiting = [];
  catchUp().then(() => append(came)).catch(complain);
}

/** Everything after the newest line on the page; the server answers in portions. */
async function catchUp() {
  for (;;) {
    const last = lines.at(-1)?.seq;
    const found = await json(`${api}/log${last === undefined ? "" : `?after_seq=${last}`}`);
    append(found.lines);
    if (last === undefined) older = found.lines.length >= 500;
    if (last === undefined || !found.lines.length || lines.at(-1).seq === last) break;
  }
  count(by("log-lines").childElementCount);
}

by("log-older").addEventListener("click", async ({ currentTarget: button }) => {
  pause(true); // somebody reads backwards, so the end of the log must not move the lines
  if (button.getAttribute("aria-busy")) return; // the same lines are under way
  button.setAttribute("aria-busy", "true");
  const found = await json(`${api}/log?before_seq=${lines[0].seq}`).catch((error) => complain(error));
  button.removeAttribute("aria-busy");
  if (!found) return;
  older = found.lines.length >= 500;
  const height = box.scrollHeight;
  lines = [...found.lines, ...lines].slice(0, MOST);
  draw({ follow: false });
  box.scrollTop = box.scrollHeight - height;
});
by("log-pause").addEventListener("click", () => pause(!paused));
by("log-news").addEventListener("click", () => pause(false));
by("log-search").addEventListener("input", () => draw());
by("log-level").addEventListener("change", () => draw());
by("log-copy").addEventListener("click", async () => {
  const text = lines.filter(fits).map((line) => `${line.time} ${line.level} ${line.message}`).join("\n");
  if (await copy(text)) toast("Copied the lines shown", { tone: "good" });
});

onMessage("log", (message) => arrive(message.lines));
const safely = () => catchUp().catch(complain);
onBack(safely);
safely().then(() => (box.scrollTop = box.scrollHeight));
