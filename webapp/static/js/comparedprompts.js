// Two of the compared runs, and the held-out prompts on which they differ most. Each mean leads to the prompt's page in its run.
import { headOf } from "./familylines.js";
import { counted, make, score } from "./format.js";
import { json } from "./http.js";

const by = (id) => document.getElementById(id);
const signed = (value) => `${value > 0 ? "+" : ""}${score(value)}`;
let asked = 0; // an answer that comes late belongs to an earlier choice

export function comparePrompts(runs, baseline, complain) {
  if (!by("compare-prompts")) return; // a shared page shows no prompts
  const selects = [by("prompts-first"), by("prompts-second")];
  const first = runs.find((run) => run.id === baseline) ?? runs[0];
  const others = runs.filter((run) => run !== first);
  const chosen = [first.id, (others.find((run) => run.family !== first.family) ?? others[0]).id];
  selects.forEach((select, place) => {
    select.append(...runs.map((run) => Object.assign(make("option", "", run.name), { value: run.id, selected: run.id === chosen[place] })));
    select.addEventListener("change", () => load(selects, complain));
  });
  load(selects, complain);
}

async function load(selects, complain) {
  const [first, second] = selects.map((select) => ({ id: select.value, name: select.selectedOptions[0].text }));
  const mine = ++asked;
  if (first.id === second.id) return tell("Choose two different runs.", []);
  by("prompts-table").setAttribute("aria-busy", "true");
  try {
    const found = await json(`/api/v1/runs/table/prompts?${new URLSearchParams({ first: first.id, second: second.id })}`);
    if (mine === asked) tell(...drawn(found, first, second));
  } catch (error) {
    if (mine === asked) complain(error);
  } finally {
    if (mine === asked) by("prompts-table").removeAttribute("aria-busy");
  }
}

function tell(words, table) {
  by("prompts-told").textContent = words;
  by("prompts-table").replaceChildren(...table);
  by("prompts-table").hidden = !table.length;
}

function drawn(found, first, second) {
  const without = [first, second].filter((_, place) => found.steps[place] === null);
  if (without.length) return [`${without.map(({ name }) => name).join(" and ")} ${without.length > 1 ? "have" : "has"} no evaluation with responses yet.`, []];
  if (!found.shared) return ["The two evaluations have no prompt in common.", []];
  return [summary(found, first, second), found.prompts.length ? [table(found, first, second)] : []];
}

function summary({ mean, shared, unscored, only, steps }, first, second) {
  const said = [`${counted(shared, "prompt")} in both, at steps ${steps[0]} and ${steps[1]}`];
  if (mean.value !== null) said.push(`mean difference ${signed(mean.value)}${mean.low === null ? "" : ` (95% interval ${score(mean.low)} to ${score(mean.high)})`}`);
  if (unscored) said.push(`${counted(unscored, "prompt")} without a reward in one of them left out`);
  [first, second].forEach(({ name }, place) => only[place] && said.push(`${counted(only[place], "prompt")} only in ${name}`));
  return `${said.join(" · ")}.`;
}

function table(found, first, second) {
  const head = make("tr", "", make("th", "", "Prompt"), ...[first, second].map((run) => make("th", "num", headOf(run))), make("th", "num", "Difference"));
  const rows = found.prompts.map((prompt) => {
    const text = make("div", "clamp lines-2", prompt.text || prompt.key);
    text.dir = "auto";
    const cells = [prompt.first, prompt.second].map((reward, place) => mean(reward, [first, second][place], prompt.key, found.steps[place]));
    return make("tr", "", make("td", "", text), ...cells, make("td", "num", make("strong", "", signed(prompt.difference))));
  });
  const element = make("table", "table");
  element.append(make("thead", "", head), make("tbody", "", ...rows));
  return element;
}

function mean(reward, run, key, step) {
  const link = make("a", "", score(reward.mean));
  link.href = `/runs/${run.id}/prompt?${new URLSearchParams({ key, phase: "eval", step })}`;
  link.setAttribute("aria-label", `${score(reward.mean)}: the responses of ${run.name}`);
  const of = reward.n === 1 && !reward.missing ? [] : [make("small", "muted block", `n ${reward.n}${reward.missing ? `, ${reward.missing} without` : ""}`)];
  return make("td", "num", link, ...of);
}
