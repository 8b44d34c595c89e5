// The stress test as a table: criteria by responses, which criteria tell the responses apart, and the scores so far.
import { json } from "../../http.js";
import { icon } from "../../icons.js";
import { card } from "../cards.js";
import { el } from "../dom.js";
import { line } from "../text.js";
import { pointsChip, VERDICTS } from "./parts.js";

const JUDGE_LOOK_MS = 3000;
const JUDGE_MOST_MS = 600_000; // the server waits as long for the judge

/** `report` as the server gives it after submission and from /rubrics/stress. */
export function stressTable(report) {
  const letters = report.responses.map(({ letter }) => letter);
  const head = el("tr", {}, el("th.fit", {}, "Points"), el("th", {}, "Criterion"), ...letters.map((letter) => el("th.fit.stress-cell", { scope: "col" }, letter)), el("th.fit", {}, "Does it discriminate?"));
  const rows = report.criteria.map((criterion) =>
    el(
      "tr", {},
      el("td.fit.top", {}, pointsChip(criterion.points)),
      line(el("td.top.stress-text"), criterion.text),
      ...letters.map((letter) => verdictCell(criterion.verdicts[letter])),
      el("td.fit.top", {}, power(criterion)),
    ),
  );
  const scores = el("tr.stress-scores", {}, el("td"), el("th", { scope: "row" }, "Score"), ...report.responses.map(scoreCell), el("td"));
  return el("div.table-wrap", {}, el("table.table.stress-table", {}, el("thead", {}, head), el("tbody", {}, ...rows), el("tfoot", {}, scores)));
}

function verdictCell({ met, note }) {
  const { words, shape, tone } = met === null ? { words: "No verdict", shape: () => icon("minus"), tone: "" } : VERDICTS[met ? "met" : "not_met"];
  return el("td.stress-cell.top", { title: note, data: { tone } }, shape(), el("span.visually-hidden", {}, words));
}

function power({ power, told, verifier }) {
  if (power === "discriminates") return el("span.chip", { data: { tone: "good" } }, icon("check"), "yes");
  if (power !== "unknown") return el("span.chip", { data: { tone: "warn" }, title: told }, icon("triangle-alert"), power === "all_meet" ? "no: all meet it" : "no: none meets it");
  return el("span.small.muted", {}, verifier ? "not known" : "needs a judge or a person");
}

function scoreCell({ score, partial, missing }) {
  if (score === null) return el("td.stress-cell.missing", { title: `${missing} verdicts are missing, an essential one or all of them: no score` }, "–");
  const words = partial ? `Partial: ${missing} of the criteria have no verdict and are left out` : "All criteria have a verdict";
  return el("td.stress-cell.num", { title: words }, score.toFixed(2), partial ? el("sup", { ariaHidden: "true" }, "*") : null, partial ? el("span.visually-hidden", {}, " partial") : null);
}

/** The table in one or two sentences. */
export function stressWords({ responses, criteria, unverified, judging }) {
  const dull = criteria.filter(({ power }) => power === "all_meet" || power === "none_meets").length;
  const parts = [`Your rubric was tried on ${responses.length} response${responses.length === 1 ? "" : "s"} that you had not seen.`];
  if (dull) parts.push(`${dull} of ${criteria.length} criteria ${dull === 1 ? "does" : "do"} not tell them apart.`);
  if (unverified && judging) parts.push(`A judge is reading them for ${unverified} ${unverified === 1 ? "criterion" : "criteria"} without a verifier.`);
  else if (unverified) parts.push(`${unverified} ${unverified === 1 ? "criterion is" : "criteria are"} not decided on all of them yet: a judge or a person must read the responses. Until then, scores with * leave ${unverified === 1 ? "it" : "them"} out.`);
  return parts.join(" ");
}

/** The table, its words and the responses; `destroy()` is called when it is removed. */
export function stressReport(report, { title = "Stress test" } = {}) {
  const cards = report.responses.map((response) => card(response));
  const element = el(
    "section.stress", { ariaLabel: title },
    el("header.kind-head", {}, el("h2", {}, title)),
    el("p.soft", { role: "status" }, stressWords(report)),
    stressTable(report),
    el("div.stress-responses", {}, ...cards.map((each) => each.element)),
  );
  return { element, destroy: () => cards.forEach(({ panel }) => panel.destroy()) };
}

/** Adds the verdicts of a judge to the report as they come, while the report is on the page. */
export async function followJudge(element, { assignment, judging }) {
  const until = performance.now() + JUDGE_MOST_MS;
  for (let open = judging; open && performance.now() < until; ) {
    await new Promise((resolve) => setTimeout(resolve, JUDGE_LOOK_MS));
    if (!element.isConnected) return;
    try {
      const report = await json(`/api/v1/assignments/${assignment}/stress`);
      open = report.judging;
      element.querySelector(".table-wrap").replaceWith(stressTable(report));
      element.querySelector("[role=status]").textContent = stressWords(report);
    } catch {
      // the server is away, or was asked too often: the table stays as it is until the next try
    }
  }
}
