// The choice of who scores the answers, and the scores.
import { el } from "../annotate/dom.js";
import { json } from "../http.js";
import { pause } from "./pause.js";

const OFTEN_MS = 700;
const OVER = ["finished", "failed"];
const part = (id) => document.getElementById(id);

export class Scorer {
  /** `changed()` is called when another scorer or other criteria are chosen. */
  constructor({ changed }) {
    this.select = part("try-score");
    this.own = part("try-criteria");
    for (const field of [this.select, this.own]) field.addEventListener("change", () => changed());
  }

  get value() {
    return this.select.value;
  }

  choose(value) {
    if ([...this.select.options].some((option) => option.value === value)) this.select.value = value;
  }

  /** The request for a score of an answer to `asked`; null if nothing scores it. */
  body(asked, text) {
    const [kind, id] = this.select.value.split("-");
    const example = asked.example === null ? {} : { example: asked.example };
    const base = { text: text.replaceAll("\0", "␀"), messages: asked.messages, ...example };
    if (kind === "rubric") return asked.rubric ? base : null;
    if (kind === "model") return { ...base, reward_model: Number(id) };
    if (kind !== "judge") return null;
    const criteria = this.criteria();
    return { ...base, judge: Number(id), ...(criteria.length ? { criteria } : {}) };
  }

  /** The criteria, one on each line, with points in front: `2: Names a colour`. */
  criteria() {
    const lines = this.own.value.split("\n").map((line) => line.trim());
    return lines.filter(Boolean).map((line) => {
      const [, points, text] = line.match(/^(-?\d+(?:\.\d+)?)\s*:\s*(.+)$/) ?? [];
      return points === undefined ? { text: line } : { text, points: Number(points) };
    });
  }
}

/** The API's score for `body`; it waits for the worker. Throws an Error that says what prevents it. */
export async function scored(body, signal, waits) {
  let found = await json("/api/v1/try/scores", { body, signal });
  while (!OVER.includes(found.state)) {
    waits(found);
    await pause(OFTEN_MS, signal);
    found = await json(`/api/v1/try/scores/${found.id}`, { signal });
  }
  if (found.state === "failed") throw new Error(found.problem || "the worker gives no other reason");
  return found;
}

/** The line under an answer: the number, and the reasons, folded. */
export function shown(found) {
  const by = found.by === "verifiers" ? "Rubric" : `${found.by}:`;
  const met = found.criteria.filter((each) => each.met).length;
  const value = found.score === null ? `no score${found.why ? `: ${found.why}` : ""}` : found.score.toFixed(found.scale === "reward" ? 3 : 2);
  const counted = found.scale === "rubric" && found.criteria.length && found.score !== null ? `, ${met} of ${found.criteria.length} met` : "";
  const open = found.missing ? `, ${found.missing} ${found.by === "verifiers" ? "need a judge" : "open"}` : "";
  const summary = `${by} ${value}${counted}${open}`;
  const listed = found.criteria.map(({ met: is, text, points, note }) =>
    el("li", { dir: "auto" }, `${mark(is, found.scale)} ${text} (${points})`, note ? el("span.soft", {}, ` ${note}`) : ""),
  );
  const words = found.words ? el("p.soft", { dir: "auto" }, found.words) : "";
  if (!listed.length && !words) return el("p", {}, summary);
  return el("details.fold", {}, el("summary", {}, summary), words, listed.length ? el("ul.try-criteria", {}, ...listed) : "");
}

const mark = (met, scale) => (scale === "rating" ? "·" : met === null ? "?" : met ? "✓" : "✗");
