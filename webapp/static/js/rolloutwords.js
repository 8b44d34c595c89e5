// The places where the texts of a rollout have the words that were searched for.
import { make } from "./format.js";

const AROUND = 60; // characters on either side
const MOST = 6;
const UNBROKEN = /[\p{sc=Thai}\p{sc=Lao}\p{sc=Myanmar}\p{sc=Khmer}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}]/u;

/** A line for each text that has one of the words: which text, and the words in it with what stands around the first. */
export function passages(row, asked) {
  const words = wordsOf(asked);
  if (!words.length) return [];
  const pattern = new RegExp(words.map(whole).join("|"), "giu");
  const lines = [];
  for (const [name, text] of texts(row)) {
    const at = text.normalize("NFKC").search(pattern);
    if (at >= 0 && lines.length < MOST) lines.push(make("li", "", make("span", "strong", `${name}: `), ...cut(text.normalize("NFKC"), at, pattern)));
  }
  return [...lines, ...elsewhere(row, words)];
}

/** The words that no text here has stand in turns that lie apart: a link for each to its places in the episode. */
function elsewhere(row, words) {
  if (!row.turns_apart) return [];
  const here = [...texts(row)].map(([, text]) => text.normalize("NFKC"));
  const apart = words.filter((word) => !here.some((text) => new RegExp(whole(word), "iu").test(text)));
  return apart.map((word) => {
    const link = Object.assign(make("a", "", `find “${word}”`), { href: `${location.pathname}/${row.id}/episode?${new URLSearchParams({ q: word })}` });
    return make("li", "", make("span", "strong", "Turns of the episode: "), link);
  });
}

/** The word as it is searched for: whole, but in writing without blanks, where it may be a part. */
function whole(word) {
  const plain = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const edge = "[\\p{L}\\p{N}\\p{M}_]";
  return UNBROKEN.test(word) ? plain : `(?<!${edge})${plain}(?!${edge})`;
}

/** The longest first, so that a phrase is marked whole. */
function wordsOf(asked) {
  const pieces = [...asked.normalize("NFKC").matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, single]) => (quoted ?? single).trim());
  const bare = pieces.map((piece) => piece.replace(/^[^\p{L}\p{N}_]+|[^\p{L}\p{N}\p{M}_]+$/gu, ""));
  return bare.filter(Boolean).sort((a, b) => b.length - a.length);
}

function* texts(row) {
  yield ["Prompt", row.prompt];
  if (row.scaffold) yield ["Scaffold", row.scaffold];
  yield ["Key", row.example_key];
  for (const [place, { author, tool, text }] of (row.turns ?? []).entries()) yield [`Turn ${place + 1}, ${author === "env" ? "environment" : "policy"}`, tool ? `${tool}: ${text}` : text];
  if (!row.turns?.length) yield ["Response", row.response];
  if (row.excluded) yield ["Left out", row.excluded];
  for (const { text, verdict } of row.criteria ?? []) yield [`On “${text}”`, [verdict.note, verdict.raw].filter(Boolean).join(" ")];
  for (const { name, why, shown } of row.parts ?? []) yield [`Part ${name}`, [why, ...strings(shown)].filter(Boolean).join(" ")];
}

function strings(value) {
  if (typeof value === "string") return [value];
  return value && typeof value === "object" ? Object.values(value).flatMap(strings) : [];
}

function* cut(text, at, pattern) {
  const from = Math.max(at - AROUND, 0);
  const shown = text.slice(from, at + 2 * AROUND);
  if (from) yield "… ";
  let last = 0;
  for (const match of shown.matchAll(pattern)) {
    yield shown.slice(last, match.index);
    yield make("mark", "", match[0]);
    last = match.index + match[0].length;
  }
  yield shown.slice(last);
  if (from + shown.length < text.length) yield " …";
}
