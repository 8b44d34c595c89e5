"""Written rubrics are read into items, and faults of the form into problems. No text raises.

A problem costs the reward for the form. A note does not: it names something beyond the form that the writer was asked for.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import Field, ValidationError

from trainer.contracts.rubric import Criterion, Importance, Kind, RubricForm

from .answers import AnswerSchema, without_thinking
from .templates import scrub

FEWEST, MOST = 7, 20  # the number of items that MaMs asks for
POINTS: Mapping[Importance, float] = {"essential": 5.0, "important": 3.0, "optional": 1.0, "pitfall": -2.0}
"""The points of a criterion if the form has no numbers: a weight of the same class in MaMs (our choice)."""


class RubricItem(AnswerSchema):  # of our own form; a docstring would stand in the schema that endpoints are sent
    text: str = Field(min_length=1)
    kind: Kind
    importance: Importance
    points: float = Field(ge=-10, le=10)


@dataclass(frozen=True)
class WrittenItem:
    """One criterion. `points` is None if the form has no points."""

    text: str
    title: str = ""
    points: float | None = None
    kind: Kind = "principle"
    importance: Importance = "important"

    @property
    def worth(self) -> float:
        """The item's points, or those of its importance if the form has none."""
        return POINTS[self.importance] if self.points is None else self.points


@dataclass(frozen=True)
class WrittenRubric:
    """`items` are the items that could be read, even if there are problems."""

    items: tuple[WrittenItem, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """The items as criteria with the ids `g1`, `g2` ... Items with 0 points or without words decide nothing and are left out."""
        kept = [item for item in self.items if item.worth and item.text]
        return tuple(
            Criterion(id=f"g{n}", text=scrub(item.text), points=item.worth, kind=item.kind, importance=item.importance)
            for n, item in enumerate(kept, 1)
        )


Reader = Callable[[str, list[WrittenItem], list[str], list[str]], None]


def read_rubric(text: str, form: RubricForm) -> WrittenRubric:
    """The rubric in `text`, after any thinking aloud, with the problems of its form.

    `mams`: a JSON array of {title, description, weight} and no other key, weights 1 to 5, -1 or -2 for errors, a sum above
    0. `rubric_arm`: a numbered list, each line from "The response" to "[Hard Rule]" or "[Principle]". `openrubrics`: a
    Markdown checklist under the headings of hard constraints, core task, optional and pitfall criteria, in that order.
    `touchstone`: the JSON that our rubric generators answer, {"items": [{text, kind, importance, points}]}.
    """
    items: list[WrittenItem] = []
    problems: list[str] = []
    notes: list[str] = []
    spoken = without_thinking(text)
    if spoken:
        _READERS[form](spoken, items, problems, notes)
    if not items and not problems:
        problems.append("there is no criterion")
    return WrittenRubric(tuple(items), tuple(problems), tuple(notes))


# MaMs

_MAMS_KEYS = ("title", "description", "weight")
_CLASS = re.compile(
    r"\s*(?:(key|important|optional|error)(?:\s+criterion)?|(关键|重要|可选|错误)(?:标准)?)\s*[::]", re.I
)
_CHINESE = {"关键": "key", "重要": "important", "可选": "optional", "错误": "error"}
_CLASS_WEIGHTS = {"key": (5,), "important": (3, 4), "optional": (1, 2), "error": (-1, -2)}
_IMPORTANCE: Mapping[int, Importance] = {
    weight: importance
    for weights, importance in zip(_CLASS_WEIGHTS.values(), get_args(Importance), strict=True)
    for weight in weights
}


def _read_mams(text: str, items: list[WrittenItem], problems: list[str], notes: list[str]) -> None:
    found = _json(text, problems)
    if not isinstance(found, list):
        problems.extend([] if problems else ["the output is not a JSON array of items"])
        return
    for number, item in enumerate(found, 1):
        wrong = list(_mams_problems(item))
        problems.extend(f"item {number}: {each}" for each in wrong)
        if not wrong:
            notes.extend(f"item {number}: {each}" for each in _mams_notes(item))
            weight = int(item["weight"])
            items.append(
                WrittenItem(
                    _without_class(item["description"]),
                    item["title"].strip(),
                    float(weight),
                    importance=_IMPORTANCE[weight],
                )
            )
    if not FEWEST <= len(found) <= MOST:
        notes.append(f"{len(found)} items; asked for {FEWEST} to {MOST}")
    total = sum(item.points or 0 for item in items)
    if items and not problems and total <= 0:
        problems.append(f"the weights sum to {total:g}; a score needs a sum above 0")


def _mams_problems(item: Any) -> Iterator[str]:
    if not isinstance(item, dict) or sorted(item) != sorted(_MAMS_KEYS):
        keys = ", ".join(item) if isinstance(item, dict) else "no object"
        yield f"expected exactly {', '.join(_MAMS_KEYS)}; found {keys[:200]}"
        return
    for name in ("title", "description"):
        if not isinstance(item[name], str) or not item[name].strip():
            yield f"its {name} is not a text"
    if isinstance(item["description"], str) and item["description"].strip() and not _without_class(item["description"]):
        yield "its description names a class and says nothing"
    weight = item["weight"]
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight not in _IMPORTANCE:
        yield f"its weight is none of 1 to 5, -1 and -2: {str(weight)[:40]}"
    elif (stated := _class(item["description"])) and (stated == "error") != (weight < 0):
        yield f"class {stated} with weight {weight:g}; errors, and only they, have -1 or -2"


def _mams_notes(item: Any) -> Iterator[str]:
    stated = _class(item["description"])
    if stated is None:
        yield "its description does not open with its class: Key, Important, Optional or Error"
    elif item["weight"] not in _CLASS_WEIGHTS[stated]:
        weights = " or ".join(map(str, _CLASS_WEIGHTS[stated]))
        yield f"class {stated} has weight {weights}, not {item['weight']:g}"


def _class(description: Any) -> str | None:
    found = _CLASS.match(description) if isinstance(description, str) else None
    return (found[1] or _CHINESE[found[2]]).lower() if found else None


def _without_class(description: str) -> str:
    found = _CLASS.match(description)
    return description[found.end() if found else 0 :].strip()


# Rubric-ARM

_LISTED = re.compile(r"(\d{1,4})[.)]\s+(.*)")
_TAGGED = re.compile(r"(.*\S)\s*\[(hard rule|principle)\]", re.I)


def _read_rubric_arm(text: str, items: list[WrittenItem], problems: list[str], notes: list[str]) -> None:
    for place, line in enumerate(filter(str.strip, text.splitlines()), 1):
        listed = _LISTED.fullmatch(line.strip())
        if listed is None:
            problems.append(f"line {place} is not an item of a numbered list: {line.strip()[:60]}")
            continue
        if int(listed[1]) != len(items) + 1:
            problems.append(f"line {place} has number {listed[1]} where {len(items) + 1} comes next")
        tagged = _TAGGED.fullmatch(listed[2])
        said = tagged[1] if tagged else listed[2].strip()
        if tagged is None:
            problems.append(f"item {listed[1]} does not end with [Hard Rule] or [Principle]")
        if not said.lower().startswith("the response "):
            problems.append(f"item {listed[1]} does not begin with “The response”")
        hard = tagged is not None and tagged[2].lower() == "hard rule"
        items.append(
            WrittenItem(said, kind="hard" if hard else "principle", importance="essential" if hard else "important")
        )


# OpenRubrics

_HEADING = re.compile(r"#{1,6}\s*(?:\d+[.)]\s*)?[*\s]*")
_CHECK = re.compile(r"[*+-]\s*\[[ xX]?\]\s*(?:\*\*(.+?):?\*\*:?\s*)?(.*)")
_LEVELS: Mapping[str, tuple[Kind, Importance]] = {
    "hard": ("hard", "essential"),
    "core": ("principle", "important"),
    "optional": ("principle", "optional"),
    "pitfall": ("principle", "pitfall"),
}


def _read_openrubrics(text: str, items: list[WrittenItem], problems: list[str], notes: list[str]) -> None:
    level, seen = "", list[str]()
    for line in filter(None, map(str.strip, text.splitlines())):
        if opening := _HEADING.match(line):
            heading = line[opening.end() :]
            level = next((name for name in _LEVELS if heading.lower().startswith(name)), "")
            problems.extend(_heading_problems(heading, level, seen))
            seen.append(level)
        elif check := _CHECK.fullmatch(line):
            if not level:
                problems.append(f"a check stands under none of the four levels: {line[:60]}")
            elif not check[2].strip():
                problems.append(f"a check says nothing: {line[:60]}")
            else:
                kind, importance = _LEVELS[level]
                items.append(WrittenItem(check[2].strip(), (check[1] or "").strip(), kind=kind, importance=importance))
        elif line.strip("*-_ "):
            problems.append(f"neither a heading nor a check: {line[:60]}")
    if items and all(item.importance == "pitfall" for item in items):
        problems.append("there are pitfalls only, nothing that a response could do right")


def _heading_problems(heading: str, level: str, seen: list[str]) -> Iterator[str]:
    order = list(_LEVELS)
    if not level:
        yield f"a heading names none of the four levels: {heading[:60]}"
    elif any(before and order.index(before) >= order.index(level) for before in seen):
        yield f"level {level} comes twice or too late; the order is {', '.join(order)}"


# Ours


def _read_touchstone(text: str, items: list[WrittenItem], problems: list[str], notes: list[str]) -> None:
    found = _json(text, problems)
    listed = found.get("items") if isinstance(found, dict) and found.keys() == {"items"} else None
    if not isinstance(listed, list):
        problems.extend([] if problems else ['the output is not a JSON object {"items": [...]}'])
        return
    for number, raw in enumerate(listed, 1):
        try:
            item = RubricItem.model_validate(raw, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problems.append(f"item {number}: {'.'.join(map(str, first['loc'])) or 'item'}: {first['msg']}")
            continue
        problems.extend(f"item {number}: {each}" for each in _touchstone_problems(item, raw))
        items.append(WrittenItem(item.text.strip(), points=item.points, kind=item.kind, importance=item.importance))
    if items and not any((item.points or 0) > 0 for item in items):
        problems.append("no item has points above 0")


def _touchstone_problems(item: RubricItem, raw: Mapping[str, Any]) -> Iterator[str]:
    if strangers := raw.keys() - RubricItem.model_fields.keys():
        yield f"unknown key {min(strangers)[:40]}"
    if not item.text.strip():
        yield "it has no words"
    if not item.points:
        yield "0 points decide nothing"
    elif (item.importance == "pitfall") != (item.points < 0):
        yield f"importance {item.importance} with {item.points:g} points; pitfalls, and only they, are below 0"


def _json(text: str, problems: list[str]) -> Any:
    """The value of the whole text as JSON, or None and a problem. A key that appears twice is a problem."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key is twice in one object")
        return dict(pairs)

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        problems.append(f"the output is not JSON: {error}")
        return None


_READERS: Mapping[RubricForm, Reader] = {
    "mams": _read_mams,
    "rubric_arm": _read_rubric_arm,
    "openrubrics": _read_openrubrics,
    "touchstone": _read_touchstone,
}
