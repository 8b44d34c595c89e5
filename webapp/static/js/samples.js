// The viewers of samples, except that of rollouts, by the name that a recipe declares: how a group is drawn, sorted and tinted. A group
// that a viewer does not understand is drawn like rollouts.
import { make, score } from "./format.js";
import { icon } from "./icons.js";
import { tinted } from "./tint.js";
import { walkable } from "./tokenwalk.js";

const there = (value) => value !== null && value !== undefined;

/** viewer -> {fits(group), draw(group, blank, tint), tint}. The second `tint` is the kind to begin with, the first its scale or null. */
export const VIEWERS = {
  pair: { fits: (group) => group.length === 2 && there(group[0].components?.margin), draw: pair, tint: "" },
  text: { fits: (group) => group.length === 1, draw: text, tint: "loss" },
};

/** Two answers side by side; the preferred one is on the left. */
function pair(group, blank, tint) {
  const [element, part] = blank("pair-template");
  const [chosen, rejected] = [...group].sort((a, b) => a.index - b.index);
  const { margin, confidence, right } = chosen.components;
  const verdict = part("verdict");
  if (right === 0) verdict.append(icon("x"), "wrong: the model prefers the other answer");
  else if (right === 1) verdict.append(icon("check"), "right");
  else verdict.append(icon("equal"), margin ? "label of training" : "no difference yet");
  verdict.dataset.tone = right === 0 ? "bad" : right === 1 ? "good" : "";
  part("margin").textContent = `margin ${margin >= 0 ? "+" : "−"}${Math.abs(margin).toFixed(3)}${there(confidence) ? ` · sure by ${(100 * confidence).toFixed(1)}%` : ""}`;
  part("facts").textContent = facts(chosen);
  const own = new Set(["margin", "confidence", "right", "votes"]);
  part("sides").append(
    ...[chosen, rejected].map((row, i) => {
      const [side, inner] = blank("side-template");
      inner("title").textContent = i ? "Rejected" : "Preferred";
      inner("score").textContent = there(row.reward) ? score(row.reward) : "no score";
      inner("text").append(tint ? tinted(row, tint) : row.response || "(empty response)");
      inner("components").textContent = Object.entries(row.components).filter(([name]) => !own.has(name)).map(([name, value]) => `${name} ${score(value)}`).join(" · ");
      return side;
    }),
  );
  return [element];
}

/** A conversation, in which the learnt part is marked, with the loss of each token. */
function text([row], blank, tint) {
  const [element, part] = blank("text-template");
  const { loss } = row.components ?? {};
  part("loss").textContent = there(loss) ? `loss ${score(loss)} per learnt token` : "";
  part("facts").textContent = facts(row);
  part("text").append(tint ? tinted(row, tint) : row.response || "(empty)");
  if (tint) part("text").after(walkable(part("text"), "Text"));
  return [element];
}

const facts = (row) => Object.entries(row.facts ?? {}).sort().map(([name, value]) => `${name} ${value}`).join(" · ");
