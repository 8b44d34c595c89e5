"""Compares independent answers to one task: their distances, their common judgement, the judgement of most.

Pure functions of answers as they are stored (the subject's frame). They never invent a judgement: if no value has more than half of the
answers, there is no majority.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from .. import kinds

Content = Mapping[str, Any]
Groups = Sequence[Sequence[tuple[int, int]]]  # of (answer, index of the item in it)


def items(kind: str, content: Content) -> list[Any]:
    """The parts of an answer that are matched by meaning: criteria or reasons."""
    return kinds.get_kind(kind).items(content)


def agreement(kind: str, contents: Sequence[Content], groups: Groups = ()) -> float | None:
    """Mean over pairs of answers of 1 - distance, in [0, 1]; None with fewer than two answers.

    It orders tasks as a chance-corrected coefficient would, because the disagreement expected by chance is one constant of the project.
    """
    return None if len(contents) < 2 else kinds.get_kind(kind).agreement(contents, groups)


def unanimous(kind: str, contents: Sequence[Content], groups: Groups = ()) -> dict[str, Any] | None:
    """The judgement that two or more answers all give, or None. It has the reasons of all, one for each meaning."""
    asked = kinds.get_kind(kind)
    if len(contents) < 2 or any(asked.judgement(each) != asked.judgement(contents[0]) for each in contents[1:]):
        return None
    return asked.united(dict(contents[0]), contents, groups)


def majority(kind: str, contents: Sequence[Content], groups: Groups = ()) -> dict[str, Any] | None:
    """The judgement of more than half of the answers, part by part; None if some part has no such majority.

    On ordered scales the majority is that of a side (or a value), and its degree is the median of the people who chose that side.
    """
    found = kinds.get_kind(kind).majority(contents, groups) if contents else None
    return _valid(kind, found) if found else None


def _valid(kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
    """The content, or None if it is not a valid answer, such as a rubric in which only pitfalls found a majority."""
    try:
        return kinds.get_kind(kind).answer.model_validate(content).model_dump(mode="json")
    except ValidationError:
        return None
