"""The rows of a reviewer's table. A choice row has one value from each person (a strength, a verdict on a criterion, an order). An item row
has the criteria or reasons of all people that say the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .values import STRENGTHS, majority_strength

Content = Mapping[str, Any]


class Undecided(ValueError):
    """A row without a usable decision; `row` is its id."""

    def __init__(self, row: str, message: str) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True)
class GivenAnswer:
    """One person's answer, by its id."""

    id: int
    content: Content


@dataclass(frozen=True)
class AnswerRow:
    """`given`: {answer id: value} of a choice, `items`: [(answer id, index, item)] that say the same.

    `drop` is the value of a choice when it is dropped; None: it cannot be dropped.
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
        """The value of more than half; for strengths, the middle one on the side that more than half chose."""
        values = list(self.given.values())
        if self.strength:
            numbers = [int(value) for value in values if value in STRENGTHS]
            side = majority_strength(numbers, len(values))
            if side is not None:
                return str(side)
        return next((value for value in values if 2 * values.count(value) > len(values)), None)


def item_rows(answers: Sequence[GivenAnswer], groups: Any, items: Any) -> list[AnswerRow]:
    """A row for each group of items that say the same; `items(content)` lists those of an answer."""
    by_id = {each.id: each.content for each in answers}
    found = []
    for group in groups or []:
        listed = tuple((answer, index, items(by_id[answer])[index]) for answer, index in group)
        first = listed[0]
        found.append(AnswerRow(f"item:{first[0]}:{first[1]}", "item", str(first[2]["text"]), items=listed, drop=""))
    return found
