// Draws a run's state and result like the server.
import { icon } from "./icons.js";
import { number } from "./format.js";

const SHAPES = {
  draft: () => icon("circle-dashed"), queued: () => icon("clock"), starting: () => icon("loader-circle"), blocked: () => icon("hourglass"),
  pausing: () => icon("loader-circle"), paused: () => icon("circle-pause"), stopping: () => icon("loader-circle"),
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

/** "0.310 → 0.520", the first muted: a run's headline metric before and after training; null if there is none yet. */
export function result(found) {
  if (!found || found.last === null) return null;
  const now = Object.assign(document.createElement("strong"), { textContent: number(found.last, found.share) });
  if (found.first === null) return [now];
  return [Object.assign(document.createElement("span"), { className: "muted", textContent: number(found.first, found.share) }), " → ", now];
}
