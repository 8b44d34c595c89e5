// Rubric authoring from the instruction alone: the responses are not in the page until the rubric is submitted. Hints come while
// the person writes. Afterwards the rubric is tried on the responses, and may be revised.
import { icon } from "../../icons.js";
import { json } from "../../http.js";
import { copyOf, el } from "../dom.js";
import { CriterionRow, IMPORTANCE, stepped, withImportance, withPoints } from "./criterion-row.js";
import { clamp, debounced, keyed, makeCurrent } from "./parts.js";
import { followJudge, stressReport, stressTable } from "./stress.js";
import { registry } from "./verifier-form.js";

const CHECK_AFTER_MS = 450;
const MAX_CRITERIA = 100;
const MAX_UNDO = 100;

let told = null; // the report after the last submission

export default function mount(root, given) {
  told?.destroy();
  return new RubricEditor(root, given);
}

class RubricEditor {
  constructor(root, { view, draft, onChange, say }) {
    Object.assign(this, { responses: view.responses ?? [], onChange, say, past: [], round: 0, highest: 0 });
    this.note = draft?.note ?? "";
    this.build(root);
    this.fill(draft?.rubric?.criteria?.length ? draft.rubric.criteria : [this.blank()]);
    this.check = debounced(() => this.askHints(), CHECK_AFTER_MS);
    this.stress = debounced(() => this.askStress(), CHECK_AFTER_MS);
    if (draft?.rubric?.criteria?.length) this.check();
    if (this.responses.length) this.stress();
  }

  build(root) {
    const tool = (action, words, act) => keyed(".btn.ghost.small", action, { onclick: act }, words);
    this.total = el("span.small.soft.num");
    this.whole = el("ul.criterion-hints", { role: "status" });
    this.list = el("ol.criteria", { ariaLabel: "Criteria" });
    this.undoing = keyed(".btn.ghost.small", "undo_edit", { onclick: () => this.undo() }, icon("undo-2"), "Undo");
    const add = keyed(".btn.small", "criterion", { onclick: () => this.insert() }, icon("plus"), "New criterion");
    const bar = el(
      "div.criteria-bar", { role: "toolbar", ariaLabel: "For the current criterion" },
      tool("edit", "Edit", () => this.editText()),
      tool("worth_more", "More", () => this.points(1)),
      tool("worth_less", "Less", () => this.points(-1)),
      tool("kind", "Kind", () => this.turnKind()),
      tool("importance", "Importance", () => this.turnImportance()),
      tool("checked_by", "Verifier", () => this.checkedBy()),
      tool("move_up", "Up", () => this.shift(-1)),
      tool("move_down", "Down", () => this.shift(1)),
      tool("duplicate", "Duplicate", () => this.duplicate()),
      tool("delete", "Delete", () => this.remove()),
    );
    const head = el("header.kind-head", {}, el("h2.label", {}, "Criteria"), this.total, el("span.row.gap-1", {}, this.undoing, add));
    this.lede = el("p.small.soft", {}, "From the instruction alone: 2 to 10 checks, each met or not. The responses appear once you submit.");
    this.lede.hidden = this.responses.length > 0;
    this.after = el("div.stress-live");
    this.element = el("section.work-form.kind-form.rubric-editor", { ariaLabel: "Rubric" }, head, this.lede, this.whole, this.list, bar, this.after);
    root.append(this.element);
  }

  // ---- the lines ----

  blank() {
    return { id: "", text: "", points: 5, kind: "principle", importance: "important", tags: [], verifier: null };
  }

  /** An id stays with its criterion and is not used again, so that revisions can be compared. */
  fill(criteria) {
    this.highest = Math.max(this.highest, ...criteria.map(({ id }) => Number(/^c(\d+)$/.exec(id)?.[1] ?? 0)));
    this.rows = criteria.map((criterion) => new CriterionRow({ ...this.blank(), ...copyOf(criterion) }, this));
    this.current = this.rows[0] ?? null;
    this.arrange();
  }

  arrange() {
    const focused = document.activeElement;
    for (const row of this.rows) row.criterion.id ||= `c${++this.highest}`;
    this.list.replaceChildren(...this.rows.map(({ element }) => element));
    if (this.list.contains(focused)) focused.focus({ preventScroll: true });
    this.draw();
  }

  draw({ reveal = true } = {}) {
    this.rows.forEach((row, index) => {
      row.number.textContent = String(index + 1);
      row.text.ariaLabel = `Criterion ${index + 1}`;
      row.draw();
    });
    const written = this.written();
    const points = written.reduce((sum, { criterion }) => sum + Math.max(0, criterion.points ?? 0), 0);
    this.total.textContent = `${written.length} criteri${written.length === 1 ? "on" : "a"}, ${points} points can be earned`;
    this.undoing.disabled = !this.past.length;
    makeCurrent(this.rows.map(({ element }) => element), this.rows.indexOf(this.current), { reveal });
  }

  /** The criteria, without lines that were left empty. */
  written() {
    return this.rows.filter(({ criterion }) => criterion.text.trim() || criterion.verifier);
  }

  beside(row, step) {
    return this.rows[this.rows.indexOf(row) + step];
  }

  look(row) {
    if (this.current === row) return;
    this.current = row;
    this.typing = null;
    this.draw({ reveal: false });
  }

  // ---- changes; all can be undone ----

  remember() {
    this.past.push(JSON.stringify({ at: this.rows.indexOf(this.current), criteria: this.rows.map(({ criterion }) => criterion) }));
    if (this.past.length > MAX_UNDO) this.past.shift();
  }

  changed({ reveal = true } = {}) {
    this.draw({ reveal });
    this.onChange();
    this.check();
    if (this.responses.length) this.stress();
  }

  edit(row, change) {
    this.typing = null;
    this.remember();
    this.current = row;
    change(row.criterion);
    this.changed();
  }

  /** Everything that is typed in one field of one line is undone in one step. */
  typed(row, change) {
    const field = document.activeElement;
    if (this.typing !== field) this.remember();
    this.typing = field;
    change(row.criterion);
    this.changed({ reveal: false }); // a line that is longer than the window would jump at every letter
  }

  /** Without a criterion, a person writes it: on the line itself if that is still empty, and else on a new line below. */
  insert(after = this.current, criterion = null, { edit = true } = {}) {
    if (!criterion && after && !after.criterion.text.trim() && !after.criterion.verifier) return after.text.focus();
    if (this.rows.length >= MAX_CRITERIA) return this.say(`A rubric has at most ${MAX_CRITERIA} criteria.`);
    this.typing = null;
    this.remember();
    const row = new CriterionRow(criterion ?? this.blank(), this);
    this.rows.splice(after ? this.rows.indexOf(after) + 1 : this.rows.length, 0, row);
    this.current = row;
    this.arrange();
    this.changed();
    if (edit) row.text.focus();
  }

  duplicate(row = this.current) {
    if (!row) return;
    this.insert(row, { ...copyOf(row.criterion), id: "" }, { edit: false });
    this.say(`Duplicated as criterion ${this.rows.indexOf(this.current) + 1}.`);
  }

  remove(row = this.current, { edit = false } = {}) {
    if (!row) return;
    this.typing = null;
    this.remember();
    const near = this.beside(row, -1) ?? this.beside(row, 1) ?? null;
    const next = edit ? near : (this.beside(row, 1) ?? near);
    this.rows = this.rows.filter((each) => each !== row);
    if (!this.rows.length) this.rows = [new CriterionRow(this.blank(), this)];
    this.current = next ?? this.rows[0];
    this.arrange();
    if (edit) this.current.text.focus();
    this.changed();
    this.say(`Criterion deleted; ${this.written().length} left.`);
  }

  shift(by, row = this.current) {
    const at = this.rows.indexOf(row);
    if (!this.rows[at + by]) return;
    this.typing = null;
    this.remember();
    this.rows.splice(at, 1);
    this.rows.splice(at + by, 0, row);
    this.current = row;
    this.arrange();
    this.changed();
    this.say(`Moved to place ${at + by + 1} of ${this.rows.length}.`);
  }

  undo() {
    const before = this.past.pop();
    if (!before) return this.say("Nothing to undo.");
    const { at, criteria } = JSON.parse(before);
    this.typing = null;
    this.fill(criteria);
    this.current = this.rows[at] ?? this.rows[0];
    this.changed();
    this.say("Undone.");
  }

  // ---- the actions of keys on the current line ----

  move(by) {
    const row = this.rows[clamp(this.rows.indexOf(this.current) + by, 0, this.rows.length - 1)];
    this.look(row);
    this.draw();
    const { text, points } = row.criterion;
    this.say(`Criterion ${this.rows.indexOf(row) + 1}: ${text || "empty"}. ${points} points.`);
  }

  editText() {
    const { text } = this.current;
    text.focus();
    text.setSelectionRange(text.value.length, text.value.length);
  }

  points(by) {
    this.edit(this.current, (criterion) => withPoints(criterion, stepped(criterion.points, by)));
    this.say(`${this.current.criterion.points} points.`);
  }

  turnKind() {
    this.edit(this.current, (criterion) => (criterion.kind = criterion.kind === "hard" ? "principle" : "hard"));
    this.say(this.current.criterion.kind);
  }

  turnImportance() {
    const next = IMPORTANCE[(IMPORTANCE.indexOf(this.current.criterion.importance) + 1) % IMPORTANCE.length];
    this.edit(this.current, (criterion) => withImportance(criterion, next));
    this.say(next);
  }

  checkedBy() {
    this.current.toggleVerifier();
  }

  // ---- hints of the server ----

  async askHints() {
    const round = ++this.round;
    const { rows } = this;
    const criteria = rows.map(({ criterion: { text, points, verifier } }) => ({ text, points, verifier }));
    try {
      const { hints } = await json("/api/v1/rubrics/check", { body: { criteria } });
      if (round !== this.round || this.gone) return;
      this.showHints(hints.map((hint) => ({ ...hint, row: rows[hint.criterion] ?? null })));
    } catch {
      // the server is away, or the person is signed out: the frame says so when it saves
      if (round === this.round && !this.gone) this.showHints([]);
    }
  }

  showHints(hints) {
    this.hints = hints;
    for (const row of this.rows) row.showHints(hints.filter((hint) => hint.row === row));
    // "too few criteria" is not a hint before there is a first line
    const whole = hints.filter(({ row, code }) => !row && !(code === "too_few" && this.written().length === 0));
    const told = JSON.stringify(whole.map(({ message }) => message));
    if (told !== this.told) this.whole.replaceChildren(...whole.map(({ message, code }) => el("li.hint", { data: { code } }, icon("lightbulb"), message)));
    this.told = told;
  }

  /** If a submission is open again, the responses are known, so the table is drawn again at every change. */
  async askStress() {
    const criteria = this.value().rubric.criteria.filter(({ text, points }) => text && points);
    if (!criteria.some(({ points }) => points > 0)) return;
    try {
      const report = await json("/api/v1/rubrics/stress", { body: { rubric: { criteria }, responses: this.responses } });
      if (this.gone) return;
      if (this.shown) this.shown.table.replaceWith((this.shown.table = stressTable(report)));
      else {
        const { element, destroy } = stressReport(report, { title: "Stress test, as you revise" });
        this.shown = { table: element.querySelector(".table-wrap"), destroy };
        this.after.replaceChildren(element);
      }
    } catch {
      // a verifier is not complete yet: its hint says so, and the last table stays
    }
  }

  // ---- for the frame ----

  value() {
    const criteria = this.written().map(({ criterion }) => ({ ...copyOf(criterion), text: criterion.text.trim() }));
    return { note: this.note, rubric: { criteria } };
  }

  problems() {
    const written = this.written();
    if (!written.length) return [{ path: "rubric.criteria", message: "Write at least one criterion.", element: this.rows[0].text }];
    const found = [];
    written.forEach((row, index) => {
      const path = `rubric.criteria.${index}`;
      const told = (part, message, element) => found.push({ path: `${path}.${part}`, message, element });
      if (!row.criterion.text.trim()) told("text", "Say in words what the verifier checks.", row.text);
      if (!row.criterion.points || !Number.isFinite(row.criterion.points)) told("points", "Give points above or below 0.", row.points.parentElement);
      const broken = this.hints?.find((hint) => hint.row === row && hint.code === "verifier");
      if (broken) told("verifier", broken.message, row.checked);
    });
    if (!found.length && !written.some(({ criterion }) => criterion.points > 0))
      found.push({ path: "rubric.criteria", message: "At least one criterion must earn points.", element: written[0].points.parentElement });
    return found;
  }

  locate(path) {
    const row = this.written()[Number(path.match(/criteria\.(\d+)/)?.[1])];
    return row ? (path.includes("verifier") ? row.checked : row.text) : this.list;
  }

  focus() {
    this.current.text.focus();
  }

  destroy() {
    this.gone = true;
    this.check.cancel();
    this.stress.cancel();
    this.shown?.destroy();
  }
}

/** Resolves when the verifiers are loaded: `c` opens their list, and the next key chooses one. */
export const ready = registry;

/** The first thing to do in a task in which nothing was entered. */
export const begin = () => "Write at least one criterion.";

export const keys = [
  { action: "criterion", key: "n", label: "New criterion below", run: (widget) => widget.insert() },
  { action: "edit", key: "Enter", label: "Edit the text; Enter again makes the next one, Esc leaves", run: (widget) => widget.editText() },
  { action: "row_down", key: "ArrowDown", label: "Next criterion", run: (widget) => widget.move(1), repeats: true },
  { action: "row_up", key: "ArrowUp", label: "Previous criterion", run: (widget) => widget.move(-1), repeats: true },
  { action: "worth_more", key: "+", label: "One point more", run: (widget) => widget.points(1), repeats: true },
  { action: "worth_less", key: "-", label: "One point less", run: (widget) => widget.points(-1), repeats: true },
  { action: "kind", key: "k", label: "Hard or principle", run: (widget) => widget.turnKind() },
  { action: "importance", key: "i", label: "Next importance", run: (widget) => widget.turnImportance() },
  { action: "checked_by", key: "c", label: "Verifier of the criterion: choose and try one", run: (widget) => widget.checkedBy() },
  { action: "move_up", key: "Shift+ArrowUp", label: "Move the criterion up", run: (widget) => widget.shift(-1), repeats: true },
  { action: "move_down", key: "Shift+ArrowDown", label: "Move the criterion down", run: (widget) => widget.shift(1), repeats: true },
  { action: "duplicate", key: "d", label: "Duplicate", run: (widget) => widget.duplicate() },
  { action: "delete", key: "Delete", label: "Delete", run: (widget) => widget.remove() },
  { action: "undo_edit", key: "z", label: "Undo the last change", run: (widget) => widget.undo() },
];

export function describe({ rubric }) {
  const criteria = rubric?.criteria ?? [];
  if (!criteria.length) return "no criteria yet";
  return criteria.map(({ text, points }) => `${text} (${points})`).join(" · ");
}

/** After the submission and before the next task: the results of the rubric on responses that its author had not seen. */
export function after(root, { stress }) {
  told?.destroy();
  told = stressReport(stress);
  root.append(told.element);
  if (stress.judging) followJudge(told.element, stress);
}
