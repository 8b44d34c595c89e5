// The parts of a response's reward: each with its value, its weight and the reason, the judges' answers, and the cost.
import { block, line } from "./annotate/text.js";
import { icon } from "./icons.js";
import { flaws, isMatching, isTagged, isVerdict, matching, verdict } from "./judgements.js";
import { exact, make, score } from "./format.js";
import { holdsRubrics, rubrics } from "./rubrics.js";

const there = (value) => value !== null && value !== undefined;
const SOURCES = { verifier: ["calculator", "a program"], judge: ["gavel", "the judge"], human: ["user-round", "people"] };

/** Words that may be long, in any script, with formulas and code. */
export const words = (text, css = "") => block(make("div", `part-words clamp lines-8 ${css}`), text);

/** "reward = 0.5 × verifier + form", or the expression; shadows are named after it. */
export function formula({ parts, expression }) {
  const counted = parts.filter((part) => !part.shadow && there(part.weight));
  if (!counted.length) return "";
  const terms = counted.map(({ name, weight }) => (weight === 1 ? name : `${exact(weight)} × ${name}`));
  const shadows = parts.filter((part) => part.shadow).map((part) => part.name);
  return `reward = ${expression || terms.join(" + ")}${shadows.length ? `; measured only: ${shadows.join(", ")}` : ""}`;
}

export function criterion({ text, points, kind, verdict }, chosen) {
  const good = verdict.met === null ? null : verdict.met === points > 0;
  const shape = verdict.met === null ? icon("circle-help") : verdict.met ? icon("check") : icon("x");
  const word = verdict.met === null ? "no verdict" : verdict.met ? "met" : "not met";
  const worth = there(points) ? `${points > 0 ? "+" : "−"}${Math.abs(points)}` : "";
  const item = make("li", "criterion", shape, line(make("span", "criterion-text"), text), make("span", "criterion-points num", worth), make("span", "criterion-word", word));
  item.dataset.tone = good === null ? "warn" : good ? "good" : "bad";
  if (chosen) item.classList.add("is-chosen");
  const [shape_, by] = SOURCES[verdict.source] ?? ["circle-help", verdict.source];
  const cost = there(verdict.cost) ? `, cost ${exact(verdict.cost)}` : "";
  const kinds = { hard: "Hard criterion", principle: "Principle" };
  item.append(make("span", "criterion-source tiny muted", icon(shape_), `${kinds[kind] ?? "Criterion"} decided by ${by}${cost}`));
  if (verdict.note) item.append(words(verdict.note, "criterion-note"));
  if (verdict.met === null && verdict.raw) item.append(folded("Full answer", make("pre", "code wrap", verdict.raw)));
  return item;
}

/** Rows of the parts, or null if the response has none. `facets` have the weights. */
export function parts(row, facets) {
  if (!row.parts?.length) return null;
  const weights = new Map((facets?.parts ?? []).map((part) => [part.name, part]));
  const texts = new Map((row.criteria ?? []).map((each) => [each.verdict.criterion_id, each]));
  const list = make("ul", "parts");
  list.append(...row.parts.map((part) => partRow(part, weights.get(part.name), facets?.expression, texts)));
  return list;
}

function partRow(part, declared, expression, texts) {
  const item = make("li", "part");
  item.dataset.name = part.name;
  const weight = there(declared?.weight) && !part.shadow && !expression ? `× ${exact(declared.weight)}` : "";
  const judge = declared?.judge ? `${part.kind} · ${declared.judge}` : part.kind;
  item.append(make("span", "part-name", part.name), make("span", "tiny muted part-kind", judge));
  item.append(make("span", "part-weight num tiny muted", part.shadow ? chip("measured only") : weight));
  const value = make("span", "part-value num", there(part.value) ? score(part.value) : "no value");
  value.title = exact(part.value);
  if (!there(part.value)) item.dataset.tone = "warn";
  item.append(value);
  if (part.why) item.append(words(part.why));
  if (there(part.shown)) item.append(...seen(part.kind, part.shown, texts));
  if (part.calls) item.append(make("span", "part-cost tiny muted num", calls([part])));
  return item;
}

// A program or service of a user may show anything, under any name
const OWN = new Set(["http", "python"]);
const DRAWN = new Map([["outcome", [isVerdict, verdict]], ["rubric_verdict", [isVerdict, verdict]], ["rationale", [isMatching, matching]], ["flaws", [isTagged, flaws]], ["rubric_recall", [holdsRubrics, rubrics]]]);

/** Judgements of pairs and two rubrics are open. Everything else is folded, also if it does not have their form. */
function seen(kind, shown, texts) {
  const [fits, draw] = DRAWN.get(kind) ?? [];
  if (fits?.(shown)) return [draw(shown)];
  return [folded("Full answer", ...(draw || OWN.has(kind) ? asItIs(shown) : said(shown, texts)))];
}

const chip = (text) => make("span", "chip tiny", text);

function folded(title, ...children) {
  const fold = make("details", "part-said");
  fold.append(make("summary", "tiny", title), ...children);
  return fold;
}

/** `shown` of a part that judges measure: verdicts, ratings and answers of judges in words, other values unchanged. */
function* said(shown, texts) {
  if (typeof shown !== "object" || Array.isArray(shown)) return yield* asItIs(shown);
  const { verdicts, ratings, answers, ...rest } = shown;
  if (verdicts) {
    const list = make("ul", "criteria");
    list.append(...verdicts.map((verdict) => criterion({ text: texts.get(verdict.criterion_id)?.text ?? verdict.criterion_id, points: texts.get(verdict.criterion_id)?.points, verdict })));
    yield list;
  }
  for (const [id, rating] of Object.entries(ratings ?? {})) yield make("p", "small", line(make("span"), texts.get(id)?.text ?? id), make("strong", "num", ` ${rating ?? "no rating"}`));
  for (const answer of answers ?? []) yield* answered(answer);
  if (Object.keys(rest).length) yield* asItIs(rest);
}

function* answered({ order, parsed, problem, raw, cost }) {
  const { explanation, ...rest } = parsed ?? {};
  const orders = { given: "shown first", swapped: "shown second" };
  const facts = [orders[order] ?? order, ...Object.entries(rest).filter(([, value]) => typeof value !== "object").map(([key, value]) => `${key} ${value}`), there(cost) ? `cost ${exact(cost)}` : ""];
  yield make("p", "tiny muted", facts.filter(Boolean).join(" · "));
  if (explanation) yield words(String(explanation));
  if (problem) yield words(problem, "problem");
  const nested = Object.fromEntries(Object.entries(rest).filter(([, value]) => value && typeof value === "object"));
  if (Object.keys(nested).length) yield* asItIs(nested);
  if (raw) yield make("pre", "code wrap", raw);
}

function* asItIs(value) {
  yield typeof value === "string" ? words(value) : make("pre", "code wrap", JSON.stringify(value, null, 2));
}

/** "3 calls to judges · 812 tokens · cost 0.0012"; if no endpoint has reported a cost, it says "cost not known". */
export function calls(found) {
  const n = found.reduce((sum, part) => sum + (part.calls ?? 0), 0);
  if (!n) return "";
  const tokens = found.reduce((sum, part) => sum + (part.tokens ?? 0), 0);
  const known = found.filter((part) => part.calls && there(part.cost));
  const cost = known.length ? `cost ${exact(known.reduce((sum, part) => sum + part.cost, 0))}${known.length < found.filter((part) => part.calls).length ? " and more" : ""}` : "cost not known";
  return [`${n.toLocaleString("en")} call${n === 1 ? "" : "s"} to judges`, tokens ? `${tokens.toLocaleString("en")} tokens` : "", cost].filter(Boolean).join(" · ");
}
