"""Where independent answers to one task meet: how far apart they are, what all of them say, what most of them say.

Pure functions of answers as they are stored (the subject's frame). Nothing here invents a judgement: where no value has more
than half of the answers behind it, there is no majority.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from .. import kinds

Content = Mapping[str, Any]
Groups = Sequence[Sequence[tuple[int, int]]]  # of (answer, index of the item in it)


def items(kind: str, content: Content) -> list[Any]:
    """The parts of an answer that are matched by meaning: criteria or reasons."""
    return kinds.of(kind).items(content)


def agreement(kind: str, contents: Sequence[Content], groups: Groups = ()) -> float | None:
    """Mean over pairs of answers of 1 - distance, in [0, 1]; None with fewer than two answers.

    Tasks ordered by it stand as if ordered by a chance-corrected coefficient: the disagreement expected by chance is
    one constant of the project.
    """
    return None if len(contents) < 2 else kinds.of(kind).agreement(contents, groups)


def unanimous(kind: str, contents: Sequence[Content], groups: Groups = ()) -> dict[str, Any] | None:
    """What two or more answers all say, or None. Reasons of all are kept, one for each meaning."""
    asked = kinds.of(kind)
    if len(contents) < 2 or any(asked.judgement(each) != asked.judgement(contents[0]) for each in contents[1:]):
        return None
    return asked.united(dict(contents[0]), contents, groups)


def majority(kind: str, contents: Sequence[Content], groups: Groups = ()) -> dict[str, Any] | None:
    """What more than half of the answers say, part by part; None where some part has no such majority.

    On ordered scales the majority is of the side (or of a value), its degree the median of those who took it.
    """
    found = kinds.of(kind).majority(contents, groups) if contents else None
    return _valid(kind, found) if found else None


def _valid(kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
    """For instance a rubric of which only pitfalls found a majority is none."""
    try:
        return kinds.of(kind).answer.model_validate(content).model_dump(mode="json")
    except ValidationError:
        return None
