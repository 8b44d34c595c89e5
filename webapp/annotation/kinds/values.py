"""Helpers of several kinds of task: signs, votes, words for values, criteria of several rubrics."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

STRENGTHS = {
    "-3": "A much better",
    "-2": "A better",
    "-1": "A slightly better",
    "0": "same",
    "1": "B slightly better",
    "2": "B better",
    "3": "B much better",
}
STRENGTHS_BY_NUMBER = {int(value): words for value, words in STRENGTHS.items()}
WITHOUT_STRENGTH = {"both_bad": "both bad", "cannot_assess": "cannot assess"}
NONE = "none"  # the value of a reviewer's row that stands for "no value"
ORDERED = 2  # strength of "better" for a pair of a ranking, which has the order but no strength


def sign(value: float) -> int:
    return (value > 0) - (value < 0)


def most(values: Iterable[Any], of: int) -> Any:
    """The value with more than `of` / 2 votes, else None."""
    value, votes = max(Counter(values).items(), key=lambda item: item[1], default=(None, 0))
    return value if 2 * votes > of else None


def majority_strength(values: Sequence[int | None], of: int) -> int | None:
    """The median strength of people on the side that more than half of `of` people chose; None without such a side."""
    side: int | None = most([sign(value) for value in values if value is not None], of)
    if side is None:
        return None
    middle = median(sorted(abs(value) for value in values if value is not None and sign(value) == side))
    return side * int(middle)  # between two steps: the more careful one


def plain(text: str) -> str:
    """The text without differences of case, spaces and the last punctuation mark."""
    return " ".join(text.lower().split()).rstrip(".!")


def number(value: str) -> int | None:
    """The number of a value in a reviewer's row; see NONE."""
    return None if value == NONE else int(value)


def written(value: int | None) -> str:
    """The inverse of `number`."""
    return NONE if value is None else str(value)


def numbered(criteria: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Criteria of several rubrics as one list: an id that two of them share gets a new number."""
    taken: set[str] = set()
    found = []
    for criterion in criteria:
        name, count = str(criterion["id"]), 1
        while name in taken:
            count += 1
            name = f"{str(criterion['id'])[:58]}-{count}"
        taken.add(name)
        found.append({**criterion, "id": name})
    return found


def preference(one: str, two: str, order: int, rater: str) -> dict[str, Any]:
    """A preference that follows from an order: `order` is -1 if `one` ranks before `two`, 0 if they are equal, 1 otherwise."""
    return {"a": one, "b": two, "strength": ORDERED * order, "rater": rater}
