// A judgement of two answers beside that of people: the verdicts, and the reasons, matched one to one as a grid.
import { icon } from "./icons.js";
import { make, score } from "./format.js";

const there = (value) => value !== null && value !== undefined;
const VERDICTS = ["A much better", "A better", "a tie", "B better", "B much better"];

const listOf = (found, fits, length = found?.length) => Array.isArray(found) && found.length === length && found.every(fits);
const isText = (value) => typeof value === "string";

/** Whether `shown` of a part of kind `outcome` is a verdict on a pair. */
export const isVerdict = ({ verdict, label }) => (label === -1 || label === 1) && (verdict === null || (Number.isInteger(verdict) && Math.abs(verdict) <= 2));
export function isMatching({ human, reasons, scores, human_of, hits, rc }) {
  if (!listOf(human, isText) || !listOf(reasons, isText) || (there(rc) && !Number.isFinite(rc))) return false;
  if (!there(scores)) return !there(human_of) && !there(hits); // people or the judgement gave no reason, so nothing was matched
  const row = (found) => listOf(found, Number.isFinite, reasons.length);
  return listOf(scores, row, human.length) && listOf(human_of, Number.isInteger, reasons.length) && listOf(hits, (hit) => typeof hit === "boolean", reasons.length);
}

/** People's verdict and the judgement's; A is the answer shown first. */
export function verdict({ verdict: said, label }) {
  const right = there(said) && Math.sign(said) === Math.sign(label);
  const mark = make("span", "judged-mark", icon(right ? "check" : "x"), there(said) ? VERDICTS[said + 2] : "no verdict that can be read");
  mark.dataset.tone = right ? "good" : "bad";
  return make("p", "judged small", mark, make("span", "muted", `people prefer ${label < 0 ? "A" : "B"}`));
}

/** Two lists side by side, and below them how similar each reason of one list is to each of the other. */
export function matching({ human, reasons, scores, human_of, hits, rc, matcher }) {
  const box = make("div", "matching");
  const sides = make("div", "matching-sides", list("People", "H", human, (h) => human_of?.some((of, m) => of === h && hits[m])), list("The judgement, most important first", "R", reasons, (m) => hits?.[m]));
  box.append(sides);
  if (scores?.length && reasons.length) box.append(grid(scores, human_of, hits));
  const words = [there(rc) ? `consistency ${score(rc)}, of the first five reasons` : "", matcher ? `matched by ${matcher}` : ""];
  box.append(make("p", "tiny muted", words.filter(Boolean).join(" · ")));
  return box;
}

/** Whether `shown` of a part of kind `flaws` is reasons with a judge's tags on each. */
export function isTagged({ reasons, tags }) {
  const fits = (tag) => tag === null || (isText(tag?.rests_on) && listOf(tag.flaws, isText));
  return listOf(reasons, isText) && (!there(tags) || listOf(tags, fits, reasons.length));
}

const RESTS = { evidence: "rests on an answer", criterion: "names a demand", generic: "generic" };

/** Each reason with what it rests on and its flaws. */
export function flaws({ reasons, tags, by }) {
  const box = make("div", "matching");
  const items = reasons.map((text, i) => {
    const tag = tags?.[i];
    const words = tag ? [RESTS[tag.rests_on] ?? tag.rests_on, ...tag.flaws] : ["no tags"];
    return make("li", "", make("span", "num muted", `R${i + 1}`), make("span", "matching-text", text, make("span", "tiny muted", ` ${words.join(" · ")}`)));
  });
  if (items.length) box.append(make("ul", "tagged", ...items));
  if (isText(by)) box.append(make("p", "tiny muted", `tagged by ${by}`));
  return box;
}

function list(title, letter, texts, matched) {
  const items = texts.map((text, i) => {
    const item = make("li", "", make("span", "num muted", `${letter}${i + 1}`), make("span", "matching-text", text));
    if (matched(i)) item.append(icon("check"));
    return item;
  });
  return make("section", "", make("h4", "tiny muted", title), items.length ? make("ul", "", ...items) : make("p", "small muted", "no reasons"));
}

function grid(scores, human_of, hits) {
  const table = make("table", "matching-grid num");
  table.setAttribute("aria-label", "How far each reason of people is each of the judgement, 0 to 1; matched reasons are marked");
  const head = make("tr", "", make("td"), ...scores[0].map((_, m) => headed(`R${m + 1}`, "col")));
  const rows = scores.map((row, h) => make("tr", "", headed(`H${h + 1}`, "row"), ...row.map((value, m) => cell(value, human_of[m] === h && hits[m]))));
  table.append(make("thead", "", head), make("tbody", "", ...rows));
  return make("div", "matching-scroll", table);
}

function headed(text, scope) {
  const head = make("th", "muted", text);
  head.scope = scope;
  return head;
}

function cell(value, hit) {
  const box = make("td", hit ? "is-hit" : "", value.toFixed(2));
  if (hit) box.append(icon("check"));
  return box;
}
