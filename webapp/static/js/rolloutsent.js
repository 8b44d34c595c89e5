// Responses that were sent to annotation: the projects that ask about them, what people answered, and links that send more.
import { icon } from "./icons.js";
import { json } from "./http.js";
import { make } from "./format.js";
import { api } from "./run.js";

const address = document.getElementById("rollouts").dataset.annotate; // none for people who may not send
const placeOf = ({ step, group, index }) => `${step}-${group}-${index}`;
let told = new Map(); // place of a response -> the examples that hold it
let request = 0;

/** A link that sends these responses of one group, or null if the person may not send; `whole` names no single response. */
export function sendLink([first, ...rest], { whole = false } = {}) {
  if (!address) return null;
  const query = new URLSearchParams({ step: first.step, phase: first.phase, group: first.group });
  if (!whole) for (const { index } of [first, ...rest]) query.append("index", index);
  const link = make("a", "btn ghost small icon-only", icon("send"));
  link.href = `${address}?${query}`;
  link.title = whole ? "Send this group to annotation" : "Send this response to annotation";
  link.setAttribute("aria-label", link.title);
  return link;
}

/** The link above the list sends the first rollouts of what is shown. */
export function sendList(query, step) {
  const link = document.getElementById("annotate-list");
  if (!link) return;
  if (step !== null) query.set("step", step);
  link.href = `${address}?${query}`;
}

/** The place that says of a response that it was sent. */
export function sentPlace(row) {
  const place = make("ul", "sent");
  place.dataset.sent = placeOf(row);
  return filled(place);
}

function filled(place) {
  const examples = told.get(place.dataset.sent) ?? [];
  place.hidden = !examples.length;
  place.replaceChildren(...examples.flatMap(lines));
  return place;
}

/** Asks what was sent of a step, of all steps if it is null, and says so on the cards that are on the page. */
export async function refresh(phase, step) {
  const mine = ++request;
  const query = new URLSearchParams({ phase, ...(step === null ? {} : { step }) });
  const found = await json(`${api}/rollouts/sent?${query}`).catch(() => null); // the page is whole without it
  if (!found || mine !== request) return;
  told = new Map();
  for (const example of found.items)
    for (const rollout of example.rollouts) told.set(placeOf(rollout), [...(told.get(placeOf(rollout)) ?? []), example]);
  document.querySelectorAll("[data-sent]").forEach(filled);
}

function lines(example) {
  if (example.tasks.length) return example.tasks.map((task) => asked(task, example.rollouts.length));
  const link = Object.assign(make("a", "", "Its example"), { href: `/examples/${example.example}` });
  return [make("li", "tiny muted", icon("users"), " Sent to annotation; no project asks about it yet. ", link)];
}

function asked(task, responses) {
  const link = Object.assign(make("a", "", task.name), { href: task.url });
  const among = responses > 1 ? ` with ${responses - 1} other${responses === 2 ? "" : "s"}` : "";
  const far = task.wanted === null ? `${task.answers.length} answered` : `${task.done} of ${task.wanted} answered`;
  const line = make("li", "tiny", icon("users"), " Asked in ", link, `${among} · ${far}`);
  if (task.answers.length) line.append(make("span", "sent-answers", task.answers.join(" · ")));
  if (task.agreed) line.append(make("span", "sent-answers", make("span", "strong", "Agreed: "), task.agreed));
  return line;
}
