// Tints tokens in steps that can be distinguished without colour vision: lightness shows the amount, and the legend has the words. Negative
// values are underlined too. A token without a recorded value has no tint.
import { exact, make, number } from "./format.js";

const CUTS = 5; // of the values of a part, from the lowest to the highest on the page

/** kind -> [bin, words], from weak to strong. */
const LEGENDS = {
  logprob: [[0, "certain"], [1, "likely"], [2, "unsure"], [3, "unlikely"], [4, "very unlikely"]],
  ratio: [["d2", "below 0.8"], ["d1", "below 0.95"], [0, "near 1"], ["u1", "over 1.05"], ["u2", "over 1.2"]],
  mask: [[0, "not in the loss"], [1, "in the loss"]],
  loss: [["off", "not learnt"], [0, "loss near 0"], [1, "below 0.7"], [2, "below 1.6"], [3, "below 3"], [4, "above"]],
  entropy: [[0, "below 0.1 nats"], [1, "below 0.5"], [2, "below 1"], [3, "below 2"], [4, "2 and more"]],
  advantage: [["d2", "−1 and less"], ["d1", "below −0.1"], [0, "near 0"], ["u1", "over 0.1"], ["u2", "1 and more"], ["off", "not in the loss"]],
};

const BINS = {
  logprob: (value) => (value > -0.05 ? 0 : value > -0.7 ? 1 : value > -1.6 ? 2 : value > -3 ? 3 : 4),
  ratio: (value) => (value < 0.8 ? "d2" : value < 0.95 ? "d1" : value <= 1.05 ? 0 : value <= 1.2 ? "u1" : "u2"),
  mask: (value) => (value > 0 ? 1 : 0),
  loss: (value) => BINS.logprob(-value),
  entropy: (value) => (value < 0.1 ? 0 : value < 0.5 ? 1 : value < 1 ? 2 : value < 2 ? 3 : 4),
  advantage: (value) => (value <= -1 ? "d2" : value < -0.1 ? "d1" : value <= 0.1 ? 0 : value < 1 ? "u1" : "u2"),
};
const SOURCES = { logprob: "logprobs", ratio: "ratios", mask: "mask", entropy: "entropies" };
export const OTHERS = "by the environment: read, not learnt";
const WORDS = {
  logprob: (value) => `log-probability ${exact(value)}, probability ${exact(Math.exp(value))}`,
  ratio: (value) => `ratio ${exact(value)}`,
  mask: (value) => `weight ${exact(value)}`,
  loss: (value) => `loss ${exact(value)}, probability ${exact(Math.exp(-value))}`,
  entropy: (value) => `entropy ${exact(value)} nats`,
  advantage: (value) => `advantage ${exact(value)}`,
};
const LACKING = { loss: "not learnt", advantage: "not in the loss" };

export const isKind = (kind) => kind in LEGENDS || kind.startsWith("part:");
const there = (value) => value !== null && value !== undefined;
const partOf = (kind) => (kind.startsWith("part:") ? kind.slice(5) : null);
const recordedOf = (row, kind) => row[SOURCES[kind]] ?? [];

/** The value of each token; null for a token without one, and for a token of the environment. [] if the run did not record `kind`. */
function valuesOf(row, kind) {
  const tokens = row.tokens ?? [];
  const learnt = (i) => row.mask?.[i] !== 0;
  if (kind === "loss") return (row.logprobs ?? []).map((value, i) => (learnt(i) ? -value : null));
  if (kind === "advantage") {
    if (row.advantages?.length) return row.advantages.map((value, i) => (learnt(i) ? value : null));
    return there(row.advantage) ? tokens.map((_, i) => (learnt(i) ? row.advantage : null)) : [];
  }
  if (partOf(kind) !== null) return there(valueOfPart(row, kind)) ? tokens.map(() => valueOfPart(row, kind)) : [];
  return recordedOf(row, kind);
}

function valueOfPart(row, kind) {
  const name = partOf(kind);
  const part = row.parts?.find((each) => each.name === name);
  return part ? part.value : row.components?.[name];
}

const recorded = (row, kind) => Boolean(row.tokens?.length) && valuesOf(row, kind).length === row.tokens.length;

/** Whether every token of a response has the same value, that of the response. */
const whole = (row, kind) => partOf(kind) !== null || (kind === "advantage" && !row.advantages?.length);

/** The tint of `rows`: `bin(value)`, `words(value)`, `legend` as [bin, words], and `notes` that say what is lacking. `range` keeps the lowest
 *  and highest value of a part, because the scale does not narrow when rows leave the page. */
export function scale(kind, rows, range = {}) {
  const notes = [];
  const having = rows.filter((row) => recorded(row, kind));
  if (rows.length && having.length < rows.length) notes.push(having.length ? `recorded for ${having.length} of ${rows.length} responses` : "not recorded for any response here");
  if (having.length && having.every((row) => whole(row, kind))) notes.push("one value for the whole response");
  const own = partOf(kind) === null ? { bin: BINS[kind], words: WORDS[kind], legend: LEGENDS[kind] } : ofPart(partOf(kind), having.map((row) => valueOfPart(row, kind)), range);
  const lacking = LACKING[kind] ?? "no value";
  return { kind, css: partOf(kind) === null ? kind : "part", ...own, legend: having.length ? own.legend : [], lacking, notes };
}

/** Equal steps from the lowest to the highest value that the page has had. */
function ofPart(name, values, range) {
  const low = (range.low = Math.min(range.low ?? Infinity, ...values));
  const high = (range.high = Math.max(range.high ?? -Infinity, ...values));
  const bin = (value) => (high > low ? Math.min(CUTS - 1, Math.floor((CUTS * (value - low)) / (high - low))) : 0);
  const edge = (i) => number(low + (i * (high - low)) / CUTS);
  const legend = high > low ? Array.from({ length: CUTS }, (_, i) => [i, `${edge(i)} to ${edge(i + 1)}`]) : [[0, number(low)]];
  return { bin, words: (value) => `${name} ${exact(value)}`, legend };
}

/** The response as spans, or as plain text if the run did not send the values of the scale. */
export function tinted(row, { kind, css, bin, words, lacking }) {
  const values = valuesOf(row, kind);
  const fragment = document.createDocumentFragment();
  if (!recorded(row, kind)) {
    fragment.append(row.turns?.length ? spoken(row.turns) : row.response, make("span", "tiny muted", "  (not recorded for this response)"));
    return fragment;
  }
  const dress = (span, i, others) => {
    span.className = others ? "by-env" : `t-${css} b${there(values[i]) ? bin(values[i]) : "off"}`;
    span.title = others ? OTHERS : there(values[i]) ? words(values[i]) : lacking;
  };
  return tokens(row, dress, fragment);
}

/** The response as spans of its tokens, in its turns. `dress(span, i, others)` gives each its look. */
export function tokens(row, dress = () => {}, fragment = document.createDocumentFragment()) {
  const place = turns(row, fragment);
  row.tokens.forEach((token, i) => {
    const [others, parent] = place(i);
    const span = make("span", "", token);
    span.dataset.token = i;
    dress(span, i, others);
    parent.append(span);
  });
  return fragment;
}

/** The turn to which the i-th token belongs, and whether the environment wrote it: turns are separated as in `spoken`. */
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
