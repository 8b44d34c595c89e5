// A written rubric beside that of people. Each criterion says whether the other rubric has it, too.
import { line } from "./annotate/text.js";
import { make } from "./format.js";
import { icon } from "./icons.js";

const isCriterion = (found) => typeof found?.text === "string" && (found.points === null || found.points === undefined || Number.isFinite(found.points));

/** Whether `shown` of a part of kind `rubric_recall` holds two rubrics. */
export const holdsRubrics = ({ written, human, matches }) => [written, human].every((side) => Array.isArray(side) && side.every(isCriterion)) && (matches === null || (Array.isArray(matches) && matches.every(Array.isArray)));

/** `written` and `human` are criteria, `matches` pairs of their places, many to many; null if they could not be matched. */
export function rubrics({ written, human, matches }) {
  const both = make("div", "rubrics");
  const alike = (side) => matches && new Set(matches.map((pair) => pair[side]));
  both.append(column("Written rubric", written, human.length ? alike(0) : null, "people have it too", "people do not have it"));
  if (human.length) both.append(column("Rubric of people", human, alike(1), "written too", "not written"));
  return both;
}

function column(title, criteria, alike, same, differs) {
  const side = make("section", "rubric-side stack gap-2");
  const list = make("ul", "criteria");
  list.append(...criteria.map((each, i) => item(each, alike && alike.has(i), same, differs)));
  side.append(make("h4", "label", title), criteria.length ? list : make("p", "small muted", "No criterion could be read."));
  return side;
}

const mark = (alike) => (alike === null ? icon("list-checks") : alike ? icon("equal") : icon("circle-dashed"));

function item({ text, points, importance }, alike, same, differs) {
  const worth = points === null || points === undefined ? "" : `${points > 0 ? "+" : "−"}${Math.abs(points)}`;
  const row = make("li", "criterion", mark(alike), line(make("span", "criterion-text"), text));
  row.append(make("span", "criterion-points num", worth), make("span", "criterion-word", alike === null ? (importance ?? "") : alike ? same : differs));
  if (alike !== null) row.dataset.tone = alike ? "good" : "warn";
  return row;
}
