// The frame of a run's page, which is the same on every tab: state, progress, headline numbers, menus. Other modules listen to the
// messages of its websocket through `onMessage` and `onBack`.
import { reload } from "./attention.js";
import { connect } from "./socket.js";
import { badge, result } from "./badge.js";
import { copy } from "./copy.js";
import { json } from "./http.js";
import { gained, number } from "./format.js";
import { metricOf } from "./metrics.js";
import { about, duration } from "./times.js";
import { toast } from "./toast.js";

const root = document.getElementById("run");
export const api = root.dataset.api;
export const runId = Number(root.dataset.run);
export let run = JSON.parse(document.getElementById("run-data").textContent);
/** The recipe's declarations of its metrics. */
export const declared = JSON.parse(document.getElementById("metrics-data").textContent);

const GENERATED = "perf/generated_tokens";
const TOKENS_MS = 5000; // between two questions
let asksTokens = false;
let tokensDue = false;
const listeners = new Map();
const backs = new Set();

export function onMessage(type, listener) {
  if (!listeners.has(type)) listeners.set(type, new Set());
  listeners.get(type).add(listener);
}
export const onBack = (listener) => backs.add(listener);
export const isOver = () => ["stopped", "finished", "failed"].includes(run.state);

const bind = (name) => root.querySelectorAll(`[data-bind="${name}"]`);
const write = (name, text) => bind(name).forEach((element) => element.textContent !== text && (element.textContent = text));

/** As its process says; until then, as long as earlier runs took for the steps that are left. */
function timeLeft() {
  if (isOver()) return "";
  if (run.progress.eta_s !== null) return `${duration(run.progress.eta_s)} left`;
  if (run.expected_s === null || run.expected_s === undefined || run.state === "paused") return "";
  return run.state === "queued" ? `takes ${about(run.expected_s)}` : `${about(run.expected_s)} left`;
}

function show() {
  const { progress, summary } = run;
  if (bind("state")[0]?.dataset.state !== run.state) {
    bind("state").forEach((element) => {
      element.replaceChildren(badge(run.state));
      element.dataset.state = run.state;
    });
  }
  bind("bar").forEach((bar) => {
    bar.value = progress.fraction;
    bar.dataset.state = run.state;
  });
  write("step", String(progress.step));
  write("steps", String(progress.steps_total));
  write("percent", `${Math.floor(progress.fraction * 100)}%`);
  write("phase", phase(progress));
  bind("started").forEach((element) => run.started_at && !element.querySelector("time") && element.replaceChildren("started ", moment(run.started_at)));
  write("left", timeLeft());
  bind("devices").forEach((element) => {
    const { learner_device: learner, sampler_device: sampler } = progress;
    element.hidden = !learner;
    element.textContent = `Trains on ${learner}${sampler ? ` · samples on ${sampler}` : ""}`;
  });
  bind("limit").forEach((element) => {
    element.hidden = run.time_limit_s === null;
    if (!element.hidden) element.textContent = `Time limit: ${duration(run.under_way_s)} of ${duration(run.time_limit_s)} used`;
  });
  bind("tokens").forEach((element) => (element.hidden = run.token_limit === null));
  bind("early").forEach((element) => {
    element.hidden = !run.stop_early;
    if (run.stop_early) element.textContent = `Stops early if ${earlyWords(run.stop_early)}`;
  });
  bind("reason").forEach((element) => {
    element.textContent = run.state_reason;
    element.hidden = !run.state_reason || run.state === "failed";
  });
  if (result(run.result)) bind("result").forEach((element) => element.replaceChildren(...result(run.result)));
  if (run.result?.title) write("result-title", run.result.title);
  bind("interval").forEach((element) => {
    const { low, high, n, share } = run.result ?? {};
    element.hidden = low === undefined || low === null;
    if (!element.hidden) element.textContent = `95%: ${number(low, share)} to ${number(high, share)}${n ? ` · n ${n}` : ""}`;
  });
  const { first = null, last = null } = run.result ?? {}; // a run of another program has no result
  if (first === null && last !== null) write("gain", "at the start");
  if (first !== null && last !== null) write("gain", `${gained(run.result)} since the start`);
  root.querySelectorAll("[data-metric]").forEach((element) => {
    const value = summary[element.dataset.metric];
    if (value !== undefined) element.textContent = number(value, metricOf(declared, element.dataset.metric)?.share);
  });
  document.querySelectorAll("[data-show-in]").forEach((element) => (element.hidden = !element.dataset.showIn.split(" ").includes(run.state)));
  document.querySelectorAll("[data-run-name]").forEach((element) => (element.textContent = run.name));
}

/** The condition of an early stop, in the words of the server. */
function earlyWords({ metric, patience, min_delta: least }) {
  const values = `${patience.toLocaleString("en")} ${metric.startsWith("eval/") ? "evaluation" : "value"}${patience === 1 ? "" : "s"}`;
  const { chart, title } = metricOf(declared, metric) ?? {};
  const named = title ? `${chart ? `${chart}, ` : ""}${title} (${metric})` : metric;
  return `${named} does not improve${least ? ` by more than ${least}` : ""} in ${values}`;
}

/** The number of generated tokens is a sum over its steps, which the server makes: asked for when a step has told its tokens. */
async function showTokens() {
  tokensDue = asksTokens;
  if (asksTokens || run.token_limit === null) return;
  asksTokens = true;
  try {
    const { generated_tokens: generated, token_limit: limit } = await json(`${api}/tokens`);
    if (limit !== null) write("tokens", `Token limit: ${generated.toLocaleString("en")} of ${limit.toLocaleString("en")} tokens generated`);
  } catch {
    // the next step, or the connection that comes back, tries again
  }
  setTimeout(() => {
    asksTokens = false;
    if (tokensDue) showTokens();
  }, TOKENS_MS);
}

/** "3 minutes ago", which times.js keeps moving. */
function moment(iso) {
  const element = document.createElement("time");
  element.dateTime = iso;
  element.dataset.ago = "";
  return element;
}

function phase({ phase: name, phase_done: done, phase_total: total }) {
  if (isOver() || run.state === "paused" || !name) return "";
  return total ? `${name} · ${done} of ${total}` : name;
}

function tick() {
  if (document.hidden) return;
  bind("took").forEach((element) => {
    const start = run.started_at ?? element.dataset.start;
    if (start) element.textContent = duration(((run.ended_at ? Date.parse(run.ended_at) : Date.now()) - Date.parse(start)) / 1000);
  });
}

function hear(message) {
  if (message.type === "resync") return catchUp(); // the server dropped messages because this page was too slow
  if (message.type === "now") {
    // sent at each connection, because messages from before it were not heard
    const behind = message.last_seq !== run.last_seq;
    hear({ ...message, type: "run" });
    if (behind) for (const back of backs) back();
    return;
  }
  if (message.type === "run") {
    const failed = message.state === "failed" && run.state !== "failed";
    const limited = message.token_limit !== undefined && message.token_limit !== run.token_limit;
    run = { ...run, ...message };
    if (failed) return reload(); // so that the server draws the reason and the last log lines
    show();
    if (limited) showTokens();
  } else if (message.type === "metrics") {
    for (const [key, value] of Object.entries(message.values ?? {})) run.summary[key] = value;
    show();
    if (GENERATED in (message.values ?? {})) showTokens();
  }
  for (const listener of listeners.get(message.type) ?? []) listener(message);
}

async function catchUp() {
  try {
    hear({ type: "run", ...(await json(api)) });
  } catch (error) {
    toast(error.message, { tone: "warn", id: error.id });
  }
  for (const back of backs) back();
}

document.addEventListener("click", async (event) => {
  const source = event.target.closest("[data-copy-from]");
  if (source) {
    const from = document.getElementById(source.dataset.copyFrom);
    const text = from.content?.textContent ?? from.textContent;
    const pretty = from.type === "application/json" ? JSON.stringify(JSON.parse(text), null, 2) : text;
    toast((await copy(pretty)) ? "Copied" : "The browser did not allow copying.", { tone: "good" });
  }
});
document.querySelectorAll("[data-only-changed]").forEach((box) => {
  const sift = () => document.querySelector(".config-table").toggleAttribute("data-hide-same", box.checked);
  box.addEventListener("change", sift);
  sift();
});

show();
tick();
setInterval(tick, 1000);
connect(root.dataset.ws, hear);
