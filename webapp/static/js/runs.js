// The list of runs: rows change in place, new runs announce themselves, nothing moves under the pointer.
import { connect } from "./socket.js";
import { badge, scores } from "./badge.js";
import { duration } from "./times.js";

const list = document.getElementById("run-list");
const fresh = new Set();

function update(row, run) {
  const part = (name) => row.querySelector(`[data-bind="${name}"]`);
  const state = part("state");
  if (state.firstElementChild?.dataset.state !== run.state) {
    state.replaceChildren(badge(run.state));
  }
  part("name").textContent = run.name;
  part("bar").value = run.progress.fraction;
  part("bar").dataset.state = run.state;
  part("step").textContent = run.progress.step;
  part("steps").textContent = run.progress.steps_total;
  part("left").textContent = run.progress.eta_s !== null && !run.ended_at ? ` · ${duration(run.progress.eta_s)} left` : "";
  if (run.started_at) part("took").dataset.start = run.started_at;
  part("took").dataset.end = run.ended_at ?? "";
  const pair = scores(run.summary["eval/rubric_score:first"], run.summary["eval/rubric_score"]);
  if (pair) part("scores").replaceChildren(...pair);
}

function announce() {
  const news = list.querySelector("[data-news]");
  news.hidden = !fresh.size;
  news.textContent = `${fresh.size} new run${fresh.size === 1 ? "" : "s"}: show`;
}

if (list) {
  const chosen = () => list.querySelectorAll('input[name="ids"]:checked');
  const button = list.querySelector("[data-compare]");
  const count = () => {
    const n = chosen().length;
    button.disabled = n < 2 || n > 8;
    button.querySelector("span").textContent = n > 1 ? `Compare ${n}` : "Compare";
    button.title = n < 2 ? "Choose two to eight runs" : "";
  };
  list.addEventListener("change", (event) => {
    if (event.target.matches("[data-autosubmit]")) event.target.form.requestSubmit();
    else count();
  });
  count();
  setInterval(() => {
    for (const cell of list.querySelectorAll('[data-bind="took"][data-end=""]')) {
      if (cell.dataset.start) cell.textContent = duration((Date.now() - Date.parse(cell.dataset.start)) / 1000);
    }
  }, 1000);
  const hear = (message) => {
    if (message.type === "resync") return location.reload();
    if (message.type !== "run") return;
    const row = list.querySelector(`tr[data-run="${message.id}"]`);
    if (row) update(row, message);
    else if (message.state === "queued") fresh.add(message.id);
    announce();
  };
  connect(list.dataset.ws, hear, { resync: () => location.reload() });
}
