// Tokens tinted in steps that stay apart without colour vision: lightness carries the amount, and the legend the words.
import { exact } from "./format.js";

/** kind -> [bin, words], from weak to strong. */
export const LEGENDS = {
  logprob: [[0, "certain"], [1, "likely"], [2, "unsure"], [3, "unlikely"], [4, "very unlikely"]],
  ratio: [["d2", "below 0.8"], ["d1", "below 0.95"], [0, "near 1"], ["u1", "over 1.05"], ["u2", "over 1.2"]],
  mask: [[0, "not in the loss"], [1, "in the loss"]],
  loss: [["off", "not learnt"], [0, "loss near 0"], [1, "below 0.7"], [2, "below 1.6"], [3, "below 3"], [4, "above"]],
};

const BINS = {
  logprob: (value) => (value === null ? "off" : value > -0.05 ? 0 : value > -0.7 ? 1 : value > -1.6 ? 2 : value > -3 ? 3 : 4),
  ratio: (value) => (value === null ? "off" : value < 0.8 ? "d2" : value < 0.95 ? "d1" : value <= 1.05 ? 0 : value <= 1.2 ? "u1" : "u2"),
  mask: (value) => (value > 0 ? 1 : 0),
};
BINS.loss = (value) => (value === null ? "off" : BINS.logprob(-value));
const SOURCES = { logprob: "logprobs", ratio: "ratios", mask: "mask" };
const OTHERS = "written by the environment, so read and not learnt";
const WORDS = {
  logprob: (value) => (value === null ? OTHERS : `log-probability ${exact(value)}, probability ${exact(Math.exp(value))}`),
  ratio: (value) => (value === null ? OTHERS : `ratio ${exact(value)}`),
  mask: (value) => `weight ${exact(value)}`,
  loss: (value) => (value === null ? "not learnt" : `loss ${exact(value)}, probability ${exact(Math.exp(-value))}`),
};

/** What stands behind each token; null for one that the environment wrote, and for the loss of one that is masked. */
function valuesOf(row, kind) {
  if (kind !== "loss") return row[SOURCES[kind]] ?? [];
  return (row.logprobs ?? []).map((value, i) => (row.mask?.[i] === 0 ? null : -value));
}

/** The response as spans, or as plain text where the run did not send what `kind` shows. */
export function tinted(row, kind) {
  const values = valuesOf(row, kind);
  const fragment = document.createDocumentFragment();
  if (!row.tokens?.length || values.length !== row.tokens.length) {
    fragment.append(row.response, Object.assign(document.createElement("span"), { className: "tiny muted", textContent: "  (not recorded for this response)" }));
    return fragment;
  }
  row.tokens.forEach((token, i) => {
    const span = document.createElement("span");
    span.className = `t-${kind} b${BINS[kind](values[i])}`;
    span.textContent = token;
    span.title = WORDS[kind](values[i]);
    fragment.append(span);
  });
  return fragment;
}
