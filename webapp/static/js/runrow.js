// One run in a list, as a table row or a card. Its parts have data-bind, and change in place.
import { reload } from "./attention.js";
import { badge, result } from "./badge.js";
import { connect } from "./socket.js";
import { duration } from "./times.js";

/** Shows the message `run` of /ws/workspace in `row`. A list need not have every part. */
export function update(row, run) {
  const bind = (name, change) => {
    const part = row.querySelector(`[data-bind="${name}"]`);
    if (part) change(part);
  };
  const text = (name, value) => bind(name, (part) => (part.textContent = value));
  bind("state", (part) => {
    if (part.firstElementChild?.dataset.state !== run.state) part.replaceChildren(badge(run.state));
  });
  text("name", run.name);
  bind("bar", (part) => {
    part.value = run.progress.fraction;
    part.dataset.state = run.state;
  });
  text("step", run.progress.step);
  text("steps", run.progress.steps_total);
  text("left", run.progress.eta_s !== null && !run.ended_at ? ` · ${duration(run.progress.eta_s)} left` : "");
  bind("took", (part) => {
    if (run.started_at) part.dataset.start = run.started_at;
    part.dataset.end = run.ended_at ?? "";
  });
  const pair = result(run.result);
  if (pair) bind("result", (part) => part.replaceChildren(...pair));
  else if (run.ended_at) bind("result", (part) => part.querySelector(".missing")?.replaceChildren("none"));
}

/** Updates the times of runs that have not ended. */
export function tick(list) {
  setInterval(() => {
    for (const cell of list.querySelectorAll('[data-bind="took"][data-end=""]')) {
      if (cell.dataset.start) cell.textContent = duration((Date.now() - Date.parse(cell.dataset.start)) / 1000);
    }
  }, 1000);
}

/** Listens to /ws/workspace: rows change in place, and new runs are announced in the [data-news] of `list`. */
export function follow(list) {
  const fresh = new Set();
  const hear = (message) => {
    if (message.type === "resync") return reload();
    if (message.type !== "run") return;
    const row = list.querySelector(`[data-run="${message.id}"]`);
    if (row) update(row, message);
    else if (message.state === "queued") fresh.add(message.id);
    const news = list.querySelector("[data-news]");
    news.hidden = !fresh.size;
    news.textContent = `${fresh.size} new run${fresh.size === 1 ? "" : "s"}: show`;
  };
  connect(list.dataset.ws, hear, { resync: reload });
}
