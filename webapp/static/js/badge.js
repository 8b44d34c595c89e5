// A run's state and scores, drawn by scripts as the server draws them.
import { icon } from "./icons.js";
import { score } from "./format.js";

const SHAPES = {
  queued: () => icon("clock"), starting: () => icon("loader-circle"), paused: () => icon("circle-pause"), stopping: () => icon("loader-circle"),
  stopped: () => icon("circle-stop"), finished: () => icon("circle-check"), failed: () => icon("circle-x"),
};

/** The state badge as the server draws it. */
export function badge(state) {
  const span = document.createElement("span");
  span.className = "state";
  span.dataset.state = state;
  const shape = SHAPES[state]?.() ?? Object.assign(document.createElement("span"), { className: "live-dot" });
  span.append(shape, state[0].toUpperCase() + state.slice(1));
  return span;
}

/** "0.310 → 0.520", the first muted. */
export function scores(first, last) {
  if (last === undefined || last === null) return null;
  const from = Object.assign(document.createElement("span"), { className: "muted", textContent: score(first) });
  return [from, " → ", Object.assign(document.createElement("strong"), { textContent: score(last) })];
}
