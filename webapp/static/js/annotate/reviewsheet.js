// Draws a task under review: the prompt and responses, and a table of each person's answer with the result.
import { icon } from "../icons.js";
import { el } from "./dom.js";
import { cut, line, TextPanel, tooLong } from "./text.js";

export const words = {
  sources: {
    unanimous: ["good", "check-check", "Unanimous"],
    consolidated: ["accent", "gavel", "Consolidated"],
    majority: ["info", "users", "Majority"],
    unresolved: ["warn", "circle-help", "Unresolved"],
  },
  actions: { keep: "kept", merge: "merged", edit: "edited", drop: "dropped", set: "set" },
};
const MAX_REASON = 2000; // characters, as `records.Reason` on the server
const IMPORTANCE = ["essential", "important", "optional", "pitfall"];

/** Draws the prompt, reference and responses, once. */
export function drawTask(place, data) {
  const turns = data.prompt.map((turn) => el("div", { class: "turn" }, data.prompt.length > 1 ? el("span", { class: "label" }, turn.role) : null, body(turn.content)));
  const parts = [el("div", { class: "card" }, el("div", { class: "card-body stack gap-2" }, ...turns))];
  if (data.rationale) parts.push(text("Rationale to cut into reasons", data.rationale));
  if (data.reference) parts.push(text("Reference", data.reference));
  if (data.responses.length) {
    const cards = data.responses.map((each) => el("article", { class: "card response" }, el("div", { class: "card-head" }, el("h3", {}, data.responses.length > 1 || data.kind === "pairwise" ? `Response ${each.letter}` : "Response")), el("div", { class: "card-body" }, body(each.text))));
    const block = el("div", { class: "responses", "data-count": String(Math.min(cards.length, 3)) }, ...cards);
    parts.push(data.kind === "rubric" ? el("details", { class: "fold" }, el("summary", { class: "small" }, `${cards.length} response${cards.length === 1 ? "" : "s"} (their authors did not see them)`), block) : block);
  }
  place.replaceChildren(...parts);
}

/** A text as people see it at the workbench: formatted, or as it was written if they chose that. */
function body(content) {
  return new TextPanel(content).element;
}

function text(title, content) {
  return el("details", { class: "fold", open: true }, el("summary", { class: "small" }, title), body(content));
}

/** Draws the table, again at every decision. */
export function drawSheet(place, view) {
  const { data } = view;
  if (!data.people.length) {
    place.replaceChildren(el("p", { class: "soft" }, "This task has no answer."));
    return;
  }
  const head = el("tr", {}, el("th", { scope: "col", class: "what" }, ...heading(data)), ...data.people.map((person, index) => el("th", { scope: "col" }, personHead(person, index, view))), el("th", { scope: "col", class: "result" }, "Decision"));
  const body = data.rows.map((row, index) => drawRow(row, index, view));
  if (!body.length) body.push(el("tr", {}, el("td", { colspan: String(data.people.length + 2), class: "soft" }, "There is nothing to decide: no items were given.")));
  const notes = data.people.some((person) => person.note) ? [el("tr", { class: "notes" }, el("th", { scope: "row", class: "what" }, "Note"), ...data.people.map((person) => person.note ? line(el("td"), person.note) : el("td")), el("td", {}))] : [];
  place.replaceChildren(el("table", { class: "sheet", "data-kind": data.kind }, el("thead", {}, head), el("tbody", {}, ...body, ...notes)));
}

function heading(data) {
  const how = { words: "matched by words", "a reviewer": "matched by a reviewer", "": "" }[data.matcher];
  if (how === "") return [data.heading];
  return [data.heading, el("small", {}, data.kind === "pairwise" ? `reasons ${how ?? "matched by meaning"}` : (how ?? "matched by meaning"))];
}

function personHead(person, index, view) {
  const facts = [person.seconds === null ? "time not measured" : `${Math.round(person.seconds)} s`, person.revision > 1 ? `revision ${person.revision}` : "", person.guidelines ? `guidelines v${person.guidelines}` : "", person.suggestion !== "never" ? `suggestion ${person.suggestion}` : ""].filter(Boolean);
  return el("div", { class: "person" }, el("kbd", {}, String(index + 1)), el("span", {}, person.label),
    el("button", { type: "button", class: "btn ghost small icon-only", "aria-label": `Send back to ${person.label}`, title: "Send back (b)", onclick: () => view.sendBack(index) }, icon("corner-up-left")),
    el("small", { class: "muted" }, person.fast ? el("span", { class: "warn" }, icon("triangle-alert"), `${Math.round(person.seconds * 10) / 10} s`) : null, (person.fast ? facts.slice(1) : facts).join(" · ")));
}

function drawRow(row, index, view) {
  const current = index === view.focus;
  const decision = view.decisions[row.id];
  const state = decision ? (row.agreed && decision === row.agreed ? "agreed" : decision.action) : "open";
  const drawn = el("tr", { "data-state": state, "aria-current": current ? "true" : null, onclick: (event) => event.target.closest("button,select,input,textarea,form") || view.onFocus(index) });
  const cells = view.data.people.map((person, place) => el("td", { class: chosen(row, decision, person) ? "chosen" : null }, given(row, person, place, view, index)));
  drawn.append(el("th", { scope: "row", class: "what" }, row.type === "item" ? support(row, view.data) : line(el("div"), row.label)), ...cells, el("td", { class: "result" }, result(row, index, decision, view, current)));
  return drawn;
}

function support(row, data) {
  const [shared, people] = [row.items.length, data.people.length];
  return el("span", { class: "support", title: `${shared} of ${people} people say so` }, `${data.kind === "rubric" ? "Criterion" : "Reason"} · ${shared} of ${people}`);
}

function chosen(row, decision, person) {
  if (!decision || decision.action === "drop") return false;
  if (row.type === "choice") {
    const value = valueOf(row, decision);
    return value !== null && row.given[person.answer] === value;
  }
  return decision.action === "keep" ? decision.answer === person.answer : row.items.some((each) => each.answer === person.answer);
}

function given(row, person, place, view, index) {
  if (row.type === "choice") {
    const value = row.given[person.answer];
    if (value === undefined) return el("span", { class: "missing" }, "–");
    return el("button", { type: "button", class: "said", title: `Take it (${place + 1})`, onclick: () => view.act("take", place, index) }, labelOf(row, value));
  }
  const mine = row.items.find((each) => each.answer === person.answer);
  if (!mine) return el("span", { class: "missing" }, "–");
  return el("button", { type: "button", class: "said item", title: `Take it (${place + 1})`, onclick: () => view.act("take", place, index) }, ...itemParts(mine.item, view.data.responses));
}

/** The letter of the response that a reason is about, and its passage. */
function about({ response, start, end }, responses) {
  const found = responses.find((each) => each.id === response);
  if (!found) return [`about ${response}`];
  const told = [`about ${found.letter}`];
  if (start !== null && start !== undefined) told.push(el("q", { class: "passage", dir: "auto" }, cut(found.text, start, end)));
  return told;
}

function itemParts(item, responses) {
  const parts = [line(el("span", { class: "item-text" }), item.text)];
  const facts = [];
  if (item.points !== undefined) facts.push(el("span", { class: `points num ${item.points < 0 ? "bad" : "good"}` }, `${item.points > 0 ? "+" : "−"}${Math.abs(item.points)}`), item.kind === "hard" ? "hard rule" : "principle", item.importance);
  if (item.response) facts.push(...about(item, responses));
  if (facts.length) parts.push(el("small", { class: "item-facts muted" }, ...facts.flatMap((fact, index) => (index ? [" · ", fact] : [fact]))));
  return parts;
}

const labelOf = (row, value) => row.options.find((option) => option.value === value)?.label ?? value;

function valueOf(row, decision) {
  if (decision.action === "keep") return row.given[decision.answer] ?? null;
  if (decision.action === "merge") return row.most;
  if (decision.action === "drop") return row.drop;
  return decision.value ?? null;
}

function result(row, index, decision, view, current) {
  if (view.editing === row.id) return row.type === "choice" ? editChoice(row, decision, view) : editItem(row, decision, view);
  const parts = [];
  if (!decision) parts.push(el("span", { class: "open-mark" }, icon("circle-dashed"), "to decide"));
  else if (decision.action === "drop") parts.push(el("span", { class: "dropped" }, icon("x"), row.type === "choice" ? labelOf(row, row.drop) : "dropped"));
  else if (row.type === "choice") parts.push(el("strong", {}, labelOf(row, valueOf(row, decision))));
  else parts.push(el("div", { class: "item" }, ...itemParts(stands(row, decision), view.data.responses)));
  if (current) parts.push(buttons(row, index, view));
  return el("div", { class: "stack gap-2" }, ...parts);
}

/** The preview of a merged item. The server merges in the same way. */
function stands(row, decision) {
  const first = row.items[0].item;
  if (decision.action === "edit") return { ...first, ...decision.item };
  if (decision.action === "keep") return (row.items.find((each) => each.answer === decision.answer) ?? row.items[0]).item;
  if (first.points !== undefined) {
    const mean = row.items.reduce((sum, each) => sum + each.item.points, 0) / row.items.length;
    return { ...first, points: Math.round(mean * 100) / 100 || first.points };
  }
  const texts = [];
  for (const { item } of row.items) if (!texts.some((other) => other.toLowerCase().includes(item.text.trim().toLowerCase()))) texts.push(item.text.trim());
  return { ...first, text: texts.map((each) => each.replace(/[.;]+$/, "")).join("; ") };
}

function buttons(row, index, view) {
  const button = (action, label, key) => el("button", { type: "button", class: "btn small", onclick: () => view.act(action, undefined, index) }, label, el("kbd", {}, key));
  const merges = row.type === "item" ? row.items.length > 1 : row.most !== null;
  return el("div", { class: "row gap-2 row-buttons" }, row.type === "item" ? button("keep", "Keep", "k") : null, merges ? button("merge", row.type === "item" ? "Merge" : "Majority", "m") : null, button("edit", row.type === "item" ? "Edit" : "Other", "e"), button("drop", row.type === "item" ? "Drop" : labelOf(row, row.drop), "d"));
}

function editChoice(row, decision, view) {
  const stands = decision && decision.action !== "drop" ? valueOf(row, decision) : row.most;
  const submit = (event) => {
    event.preventDefault();
    view.onEdit(row, event.target.elements.value.value.trim());
  };
  const field = row.free
    ? el("input", { class: "input", name: "value", "data-edit": "", value: stands ?? "", placeholder: "A > B = C", "aria-label": row.label })
    : el("select", { class: "select", name: "value", "data-edit": "", "aria-label": row.label, onchange: (event) => event.target.form.requestSubmit() }, el("option", { value: "", disabled: true, selected: true }, "Choose…"), ...row.options.map((option) => el("option", { value: option.value }, option.label)));
  return el("form", { class: "row-edit row gap-2", onsubmit: submit, onkeydown: escape(row, view) }, field, row.free ? el("button", { class: "btn small" }, "Set") : null);
}

function editItem(row, decision, view) {
  const item = decision && decision.action !== "drop" ? stands(row, decision) : row.items[0].item;
  const rubric = item.points !== undefined;
  const submit = (event) => {
    event.preventDefault();
    const fields = event.target.elements;
    const found = { text: fields.text.value.trim() };
    if (rubric) Object.assign(found, { points: Number(fields.points.value), importance: fields.importance.value, kind: fields.kind.value });
    view.onEdit(row, found);
  };
  const area = el("textarea", { class: "textarea", name: "text", rows: "3", required: true, "data-edit": "", "aria-label": "Wording" });
  const judge = () => area.setCustomValidity(rubric ? "" : tooLong(area.value.trim(), MAX_REASON));
  area.addEventListener("input", judge);
  area.value = item.text;
  judge();
  const select = (name, values, value) => el("select", { class: "select auto", name, "aria-label": name }, ...values.map((each) => el("option", { value: each, selected: each === value }, each)));
  const more = rubric ? [el("div", { class: "row gap-2" }, el("input", { class: "input auto", type: "number", step: "any", name: "points", required: true, value: String(item.points), "aria-label": "Points" }), select("importance", IMPORTANCE, item.importance), select("kind", ["hard", "principle"], item.kind))] : [];
  return el("form", { class: "row-edit stack gap-2", onsubmit: submit, onkeydown: escape(row, view) }, area, ...more, el("div", { class: "row gap-2" }, el("button", { class: "btn small primary" }, "Use this"), el("button", { class: "btn small", type: "button", onclick: () => view.onEdit(row, null) }, "Cancel")));
}

function escape(row, view) {
  return (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    view.onEdit(row, null);
  };
}
