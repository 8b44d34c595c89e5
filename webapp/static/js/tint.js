// Tints tokens in steps that can be distinguished without colour vision: lightness shows the amount, and the legend has the words.
import { exact, make } from "./format.js";

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
export const OTHERS = "by the environment: read, not learnt";
const WORDS = {
  logprob: (value) => (value === null ? OTHERS : `log-probability ${exact(value)}, probability ${exact(Math.exp(value))}`),
  ratio: (value) => (value === null ? OTHERS : `ratio ${exact(value)}`),
  mask: (value) => `weight ${exact(value)}`,
  loss: (value) => (value === null ? "not learnt" : `loss ${exact(value)}, probability ${exact(Math.exp(-value))}`),
};

/** The value of each token; null for a token of the environment, and for the loss of a masked token. */
function valuesOf(row, kind) {
  if (kind !== "loss") return row[SOURCES[kind]] ?? [];
  return (row.logprobs ?? []).map((value, i) => (row.mask?.[i] === 0 ? null : -value));
}

/** The response as spans, or as plain text if the run did not send the values of `kind`. */
export function tinted(row, kind) {
  const values = valuesOf(row, kind);
  const fragment = document.createDocumentFragment();
  if (!row.tokens?.length || values.length !== row.tokens.length) {
    fragment.append(row.response, Object.assign(document.createElement("span"), { className: "tiny muted", textContent: "  (not recorded for this response)" }));
    return fragment;
  }
  const place = turns(row, fragment);
  row.tokens.forEach((token, i) => {
    const [others, parent] = place(i);
    const span = document.createElement("span");
    span.className = others ? "by-env" : `t-${kind} b${BINS[kind](values[i])}`;
    span.textContent = token;
    span.title = others ? OTHERS : WORDS[kind](values[i]);
    parent.append(span);
  });
  return fragment;
}

/** Where the i-th token goes, and whether the environment wrote it: turns are separated as in `spoken`. */
function turns(row, fragment) {
  const ends = [];
  for (const { author, tokens } of row.turns ?? []) {
    const box = turn(author);
    fragment.append(box);
    ends.push({ end: (ends.at(-1)?.end ?? 0) + tokens, author, text: box.lastChild });
  }
  return (i) => {
    const mine = ends.find(({ end }) => i < end);
    return mine ? [mine.author === "env", mine.text] : [false, fragment];
  };
}

const turn = (author) => {
  const env = author === "env";
  return make("span", `said${env ? " is-env" : ""}`, make("span", "said-author", env ? "Environment" : "Policy"), make("span"));
};

/** A response in several turns, with the author of each. */
export function spoken(list) {
  const fragment = document.createDocumentFragment();
  for (const { author, text } of list) {
    const box = turn(author);
    box.lastChild.textContent = text.trim() || "(nothing)";
    fragment.append(box);
  }
  return fragment;
}
