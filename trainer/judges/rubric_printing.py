"""Rubrics in the forms that `rubric_forms` reads, as demonstrations for a writer."""

import json
from collections.abc import Callable, Mapping, Sequence

from trainer.contracts.rubric import Criterion, Importance, Kind, RubricForm

from .rubric_forms import POINTS, WrittenItem, read_rubric

MEETS, AVOIDS = "The response meets this: ", "The response does not do this: "
"""The words before a criterion that is not a sentence about the response, in a form that has only such sentences."""
_MOST_POINTS = 10.0
_TITLE_WORDS = 5


class Unwritable(ValueError):
    """The form cannot express the criteria; the message says why."""


def write_rubric(items: Sequence[WrittenItem], form: RubricForm) -> str:
    """The text from which `read_rubric` reads exactly these items, without a problem. Raises Unwritable if there is none."""
    text = _WRITERS[form](items)
    read = read_rubric(text, form)
    if read.problems:
        raise Unwritable(read.problems[0])
    if read.items != tuple(items):
        raise Unwritable("the form has no place for what its items say")
    return text


def items_of(criteria: Sequence[Criterion], form: RubricForm) -> tuple[WrittenItem, ...]:
    """Criteria as items of the form, as close to their meaning as the form allows.

    Breaks of lines become blanks. `rubric_arm` has sentences about the response and no points: a criterion with negative points asks for
    the absence of the fault. `mams` has whole weights: if the points of a criterion are none of them, it gets the weight of its importance.
    `openrubrics` has four levels in a fixed order. `touchstone` has points up to 10: if some are larger, all are scaled down.
    """
    return _CONVERTERS[form](criteria)


def in_order(criteria: Sequence[Criterion], form: RubricForm) -> list[Criterion]:
    """The criteria in the order of `items_of`."""
    if form != "openrubrics":
        return list(criteria)
    return sorted(criteria, key=lambda each: _ORDER.index(_level(_openrubrics_item(each))))


def turned(criterion: Criterion, form: RubricForm) -> bool:
    """Whether the form asks for the absence of what the criterion names."""
    return form == "rubric_arm" and criterion.points < 0


def _plain(text: str) -> str:
    return " ".join(text.split())


# MaMs

_MAMS_WORDS = {"essential": "Key", "important": "Important", "optional": "Optional", "pitfall": "Error"}
_MAMS_WEIGHTS = (1, 2, 3, 4, 5, -1, -2)
_MAMS_IMPORTANCE = {5: "essential", 4: "important", 3: "important", 2: "optional", 1: "optional"}


def _write_mams(items: Sequence[WrittenItem]) -> str:
    found = [
        {
            "title": item.title,
            "description": f"{_MAMS_WORDS[item.importance]}: {item.text}",
            "weight": int(item.worth) if item.worth.is_integer() else item.worth,
        }
        for item in items
    ]
    return json.dumps(found, ensure_ascii=False, indent=1)


def _mams_items(criteria: Sequence[Criterion]) -> tuple[WrittenItem, ...]:
    found = []
    for each in criteria:
        weight = each.points if each.points in _MAMS_WEIGHTS else POINTS[each.importance]
        if each.points < 0 < weight:
            weight = POINTS["pitfall"]
        elif weight < 0 < each.points:
            weight = POINTS["important"]
        importance = _MAMS_IMPORTANCE.get(int(weight), "pitfall")
        text = _plain(each.text)
        title = " ".join(text.split()[:_TITLE_WORDS])
        found.append(WrittenItem(text, title, float(weight), importance=importance))  # type: ignore[arg-type]
    return tuple(found)


# Rubric-ARM


def _write_arm(items: Sequence[WrittenItem]) -> str:
    tags: Mapping[Kind, str] = {"hard": "[Hard Rule]", "principle": "[Principle]"}
    return "\n".join(f"{number}. {item.text} {tags[item.kind]}" for number, item in enumerate(items, 1))


def _arm_items(criteria: Sequence[Criterion]) -> tuple[WrittenItem, ...]:
    return tuple(
        WrittenItem(
            _about_response(_plain(each.text), turned(each, "rubric_arm")),
            kind=each.kind,
            importance="essential" if each.kind == "hard" else "important",
        )
        for each in criteria
    )


def _about_response(text: str, turned: bool) -> str:
    if turned:
        return AVOIDS + text
    return text if text.lower().startswith("the response ") else MEETS + text


# OpenRubrics

_HEADINGS = {
    "hard": "Hard Constraints",
    "core": "Core Task Criteria",
    "optional": "Optional Criteria",
    "pitfall": "Pitfall Criteria",
}
_ORDER = list(_HEADINGS)


def _write_openrubrics(items: Sequence[WrittenItem]) -> str:
    lines = []
    for level, heading in _HEADINGS.items():
        there = [item for item in items if _level(item) == level]
        if there:
            lines.append(f"## {heading}")
            lines += [f"- [ ] **{item.title}**: {item.text}" if item.title else f"- [ ] {item.text}" for item in there]
    return "\n".join(lines)


def _level(item: WrittenItem) -> str:
    if item.kind == "hard":
        return "hard"
    return item.importance if item.importance in ("optional", "pitfall") else "core"


def _openrubrics_items(criteria: Sequence[Criterion]) -> tuple[WrittenItem, ...]:
    return tuple(map(_openrubrics_item, in_order(criteria, "openrubrics")))


def _openrubrics_item(criterion: Criterion) -> WrittenItem:
    text = _plain(criterion.text)
    if criterion.points < 0:
        return WrittenItem(text, importance="pitfall")
    if criterion.kind == "hard":
        return WrittenItem(text, kind="hard", importance="essential")
    return WrittenItem(text, importance="optional" if criterion.importance == "optional" else "important")


# Ours


def _write_touchstone(items: Sequence[WrittenItem]) -> str:
    found = [
        {"text": item.text, "kind": item.kind, "importance": item.importance, "points": item.worth} for item in items
    ]
    return json.dumps({"items": found}, ensure_ascii=False, indent=1)


def _touchstone_items(criteria: Sequence[Criterion]) -> tuple[WrittenItem, ...]:
    shrink = max(1.0, max((abs(each.points) for each in criteria), default=0.0) / _MOST_POINTS)
    found = []
    for each in criteria:
        importance: Importance = "important" if each.importance == "pitfall" else each.importance
        importance = "pitfall" if each.points < 0 else importance
        points = each.points / shrink
        found.append(WrittenItem(_plain(each.text), points=points, kind=each.kind, importance=importance))
    return tuple(found)


_WRITERS: Mapping[RubricForm, Callable[[Sequence[WrittenItem]], str]] = {
    "mams": _write_mams,
    "rubric_arm": _write_arm,
    "openrubrics": _write_openrubrics,
    "touchstone": _write_touchstone,
}
_CONVERTERS: Mapping[RubricForm, Callable[[Sequence[Criterion]], tuple[WrittenItem, ...]]] = {
    "mams": _mams_items,
    "rubric_arm": _arm_items,
    "openrubrics": _openrubrics_items,
    "touchstone": _touchstone_items,
}
