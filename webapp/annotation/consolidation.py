"""A reviewer's table: what independent answers say, side by side, and the answer that follows from the decisions.

Each kind of task becomes *rows*. A choice row has one value from each person (a strength, a verdict on a criterion, an
order); an item row has the criteria or reasons of all of them that say the same. The reviewer decides every row, and
`assemble` makes the consolidated answer of it, with a trace of where each part comes from. Pure functions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from string import ascii_uppercase
from typing import Any

from .consensus import majority_strength, numbered
from .kinds import Settings, subject_sides

Content = Mapping[str, Any]
Decision = Mapping[str, Any]  # {"action": keep|merge|edit|drop|set, "answer": id, "value": text, "item": {...}}
STRENGTHS = {
    "-3": "A much better",
    "-2": "A better",
    "-1": "A slightly better",
    "0": "same",
    "1": "B slightly better",
    "2": "B better",
    "3": "B much better",
}
WITHOUT_STRENGTH = {"both_bad": "both bad", "cannot_assess": "cannot assess"}
VERDICTS = {"met": "met", "not_met": "not met", "cannot_assess": "cannot assess"}
NONE = "none"
EDITABLE = {"rubric": ("text", "points", "kind", "importance"), "reasons": ("text",)}


class Undecided(ValueError):
    """A row without a usable decision; `row` is its id."""

    def __init__(self, row: str, message: str) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True)
class Answered:
    """One person's answer, by its id."""

    id: int
    content: Content


@dataclass(frozen=True)
class Row:
    """`given`: {answer id: value} of a choice, `items`: [(answer id, index, item)] of what says the same.

    `drop` is the value a choice takes when it is dropped; None: it cannot be.
    """

    id: str
    type: str  # "choice" or "item"
    label: str
    options: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[int, str] = field(default_factory=dict)
    items: tuple[tuple[int, int, Content], ...] = ()
    drop: str | None = None
    strength: bool = False  # values from -3 to 3, among which a side has a majority
    free: bool = False  # a choice outside the options may be written

    def most(self) -> str | None:
        """The value more than half gave; of strengths the middle one on the side more than half took."""
        values = list(self.given.values())
        if self.strength:
            numbers = [int(value) for value in values if value in STRENGTHS]
            side = majority_strength(numbers, len(values))
            if side is not None:
                return str(side)
        return next((value for value in values if 2 * values.count(value) > len(values)), None)


def rows(
    kind: str, settings: Settings, subject: Content, example: Content, answers: Sequence[Answered], groups: Any
) -> list[Row]:
    """Everything to decide about one task, in the order it is shown."""
    if kind == "pairwise":
        return [*_strength_rows(settings, answers), *_item_rows(answers, groups, "reasons")]
    if kind == "grading":
        return _grade_rows(example, answers)
    if kind == "rating":
        return _scale_rows(settings, answers)
    if kind == "ranking":
        return _order_rows(subject, answers)
    return _item_rows(answers, groups, "rubric" if kind == "rubric" else "reasons")


def _strength_rows(settings: Settings, answers: Sequence[Answered]) -> list[Row]:
    given = {each.id: _strength(each.content) for each in answers}
    found = [
        Row(
            "strength", "choice", "Preference", STRENGTHS | WITHOUT_STRENGTH, given, drop="cannot_assess", strength=True
        )
    ]
    for name in settings.dimensions:
        values = {each.id: _text(each.content.get("dimensions", {}).get(name)) for each in answers}
        options = STRENGTHS | {NONE: "cannot assess"}
        found.append(Row(f"dimension:{name}", "choice", name, options, values, drop=NONE, strength=True))
    return found


def _strength(content: Content) -> str:
    return str(content["strength"]) if content["verdict"] == "compared" else str(content["verdict"])


def _text(value: int | None) -> str:
    return NONE if value is None else str(value)


def _grade_rows(example: Content, answers: Sequence[Answered]) -> list[Row]:
    texts = {each["id"]: each["text"] for each in (example.get("rubric") or {}).get("criteria", ())}
    verdicts = {each.id: {g["criterion"]: g["verdict"] for g in each.content["grades"]} for each in answers}
    names = texts or dict.fromkeys(name for given in verdicts.values() for name in given)
    return [
        Row(
            f"criterion:{name}",
            "choice",
            texts.get(name, name),
            VERDICTS,
            {answer: given[name] for answer, given in verdicts.items() if name in given},
            drop="cannot_assess",
        )
        for name in names
    ]


def _scale_rows(settings: Settings, answers: Sequence[Answered]) -> list[Row]:
    found = []
    for scale in settings.scales:
        options = {
            str(value): f"{value} {scale.labels.get(value, '')}".strip() for value in range(scale.low, scale.high + 1)
        }
        values = {each.id: _text(each.content["ratings"].get(scale.name)) for each in answers}
        found.append(
            Row(f"scale:{scale.name}", "choice", scale.name, options | {NONE: "cannot assess"}, values, drop=NONE)
        )
    return found


def _order_rows(subject: Content, answers: Sequence[Answered]) -> list[Row]:
    letters = {side: ascii_uppercase[place] for place, side in enumerate(subject_sides(subject))}
    given = {}
    for each in answers:
        tiers = [" = ".join(sorted(letters.get(side, side) for side in tier)) for tier in each.content["tiers"]]
        given[each.id] = "cannot_assess" if each.content.get("verdict") == "cannot_assess" else " > ".join(tiers)
    options = {value: value for value in dict.fromkeys(given.values())} | {"cannot_assess": "cannot assess"}
    return [Row("order", "choice", "Order, best first", options, given, drop="cannot_assess", free=True)]


def _item_rows(answers: Sequence[Answered], groups: Any, part: str) -> list[Row]:
    by_id = {each.id: each.content for each in answers}
    found = []
    for group in groups or []:
        items = tuple((answer, index, _items(by_id[answer], part)[index]) for answer, index in group)
        first = items[0]
        found.append(Row(f"item:{first[0]}:{first[1]}", "item", str(first[2]["text"]), items=items, drop=""))
    return found


def _items(content: Content, part: str) -> Sequence[Content]:
    found: Sequence[Content] = content["rubric"]["criteria"] if part == "rubric" else content.get("reasons", [])
    return found


def agreed(row: Row, people: int) -> Decision | None:
    """The decision nobody needs to make: everybody chose the same, or wrote the same down with the same points."""
    if row.type == "choice":
        values = set(row.given.values())
        first = next(iter(row.given), None)
        return {"action": "keep", "answer": first} if len(row.given) == people and len(values) == 1 else None
    same = len({(item["text"], item.get("points")) for _, _, item in row.items}) == 1
    return {"action": "keep", "answer": row.items[0][0]} if same and len(row.items) == people else None


def assemble(
    kind: str, subject: Content, answers: Sequence[Answered], table: Sequence[Row], decisions: Mapping[str, Decision]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(content, trace) of a consolidated answer. Raises Undecided for the first row that has no usable decision."""
    values: dict[str, str] = {}
    kept: list[dict[str, Any]] = []
    trace: list[dict[str, Any]] = []
    for row in table:
        decision = decisions.get(row.id)
        if decision is None:
            raise Undecided(row.id, "needs a decision")
        if row.type == "choice":
            values[row.id] = _chosen(row, decision)
            trace.append(_traced(row, decision, value=values[row.id]))
            continue
        item = _item(row, decision)
        trace.append(_traced(row, decision, of=[[answer, index] for answer, index, _ in row.items]))
        if item is not None:
            kept.append(item)
    return _MAKE[kind](values, kept, subject, answers), trace


def _traced(row: Row, decision: Decision, **rest: Any) -> dict[str, Any]:
    found = {"row": row.id, "action": decision["action"], **rest}
    return {**found, **{name: decision[name] for name in ("answer", "item") if decision.get(name) is not None}}


def _chosen(row: Row, decision: Decision) -> str:
    action = decision.get("action")
    if action == "keep":
        if decision.get("answer") in row.given:
            return row.given[decision["answer"]]
        raise Undecided(row.id, "keeps the value of an answer that gives none here")
    if action == "merge":
        most = row.most()
        if most is None:
            raise Undecided(row.id, "has no majority")
        return most
    if action == "drop" and row.drop is not None:
        return row.drop
    value = str(decision.get("value", ""))
    if action not in ("set", "edit") or (value not in row.options and not row.free):
        raise Undecided(row.id, f"must be one of {', '.join(row.options)}")
    return value


def _item(row: Row, decision: Decision) -> dict[str, Any] | None:
    action = decision.get("action")
    if action == "drop":
        return None
    if action == "merge":
        return merged([item for _, _, item in row.items])
    if action == "edit":
        edited = decision.get("item")
        if not isinstance(edited, Mapping) or not str(edited.get("text", "")).strip():
            raise Undecided(row.id, "must have a text")
        return {**row.items[0][2], **{name: edited[name] for name in edited if name in EDITABLE["rubric"]}}
    if action == "keep":
        wanted = decision.get("answer", row.items[0][0])
        item = next((dict(item) for answer, _, item in row.items if answer == wanted), None)
        if item is not None:
            return item
    raise Undecided(row.id, "must be kept, merged, edited or dropped")


def merged(items: Sequence[Content]) -> dict[str, Any]:
    """One item of several: a criterion has the first wording and the mean of the points, a reason all wordings."""
    first = dict(items[0])
    if "points" in first:
        points = round(mean(float(item["points"]) for item in items), 2)
        return {**first, "points": points or first["points"]}
    texts: list[str] = []
    for item in items:
        text = str(item["text"]).strip()
        if not any(text.lower() in other.lower() for other in texts):
            texts.append(text)
    return {**first, "text": "; ".join(text.rstrip(".;") for text in texts)[:2000]}


def _make_pairwise(values: Any, kept: Any, subject: Content, answers: Sequence[Answered]) -> dict[str, Any]:
    strength = values.pop("strength")
    dimensions = {row.partition(":")[2]: _number(value) for row, value in values.items()}
    if strength in WITHOUT_STRENGTH:
        return {"verdict": strength, "strength": None, "dimensions": dimensions, "reasons": kept, "note": ""}
    return {"verdict": "compared", "strength": int(strength), "dimensions": dimensions, "reasons": kept, "note": ""}


def _number(value: str) -> int | None:
    return None if value == NONE else int(value)


def _make_grading(values: Any, kept: Any, subject: Content, answers: Sequence[Answered]) -> dict[str, Any]:
    """The evidence is that of the first person who gave this verdict."""
    grades = []
    for row, verdict in values.items():
        name = row.partition(":")[2]
        given = (grade for each in answers for grade in each.content["grades"] if grade["criterion"] == name)
        empty = {"criterion": name, "verdict": verdict, "start": None, "end": None, "note": ""}
        grades.append(next((dict(grade) for grade in given if grade["verdict"] == verdict), empty))
    return {"grades": grades, "note": ""}


def _make_rating(values: Any, kept: Any, subject: Content, answers: Sequence[Answered]) -> dict[str, Any]:
    return {"ratings": {row.partition(":")[2]: _number(value) for row, value in values.items()}, "note": ""}


def _make_ranking(values: Any, kept: Any, subject: Content, answers: Sequence[Answered]) -> dict[str, Any]:
    order = values["order"]
    if order == "cannot_assess":
        return {"tiers": [], "verdict": "cannot_assess", "note": ""}
    sides = {ascii_uppercase[place]: side for place, side in enumerate(subject_sides(subject))}
    tiers = [[sides.get(letter.strip(), letter.strip()) for letter in tier.split("=")] for tier in order.split(">")]
    if sorted(side for tier in tiers for side in tier) != sorted(sides.values()):
        raise Undecided("order", f"must name each of {', '.join(sides)} once, such as A > B = C")
    return {"tiers": tiers, "verdict": "ranked", "note": ""}


def _make_rubric(values: Any, kept: Any, subject: Content, answers: Sequence[Answered]) -> dict[str, Any]:
    return {"rubric": {"criteria": numbered(kept)}, "note": ""}


def _make_rationale(values: Any, kept: Any, subject: Content, answers: Sequence[Answered]) -> dict[str, Any]:
    return {"source": answers[0].content.get("source", ""), "reasons": kept, "note": ""}


_MAKE = {
    "pairwise": _make_pairwise,
    "grading": _make_grading,
    "rating": _make_rating,
    "ranking": _make_ranking,
    "rubric": _make_rubric,
    "rationale": _make_rationale,
}
