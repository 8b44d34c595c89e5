"""Two columns with a response each, and a third that says which one is better."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from webapp.files.records import BadRow, Row

from .convert import Mapping
from .fields import CHOSEN_STRENGTH

FIRST, SECOND = "response_a", "response_b"
WHICH = "preference"
# the ways to name a response by its letter
LETTERS = {f"{before}{letter}": letter for before in ("", "response_", "model_") for letter in "ab"}
WORDS = {
    **dict.fromkeys(("first", "left"), FIRST),
    **dict.fromkeys(("second", "right"), SECOND),
    **dict.fromkeys(("tie", "same", "equal", "draw"), "tie"),
    **dict.fromkeys(("neither", "both bad", "both_bad", "bothbad", "tie (bothbad)"), "both_bad"),
}
# of columns that are numbered so; elsewhere a 1 may be the second, counted from 0, or a strength
NUMBERS = {1.0: FIRST, 2.0: SECOND}
JUDGED: dict[str, dict[str, Any]] = {
    FIRST: {"strength": CHOSEN_STRENGTH},
    SECOND: {"strength": -CHOSEN_STRENGTH},
    "tie": {"strength": 0},
    "both_bad": {"verdict": "both_bad"},
}


def compared(cells: Row, columns: Mapping) -> Row:
    """Responses a and b, in the order of the columns, and the preference if the row has one. Raises BadRow."""
    texts = [cells.get(FIRST), cells.get(SECOND)]
    for field, text in zip((FIRST, SECOND), texts, strict=True):
        column = columns.get(field, field)
        if text is None:
            raise BadRow(column, "is missing: a pair needs both responses")
        if not isinstance(text, str):
            raise BadRow(column, "must be text")
    made: Row = {"responses": [{"id": letter, "text": text} for letter, text in zip("ab", texts, strict=True)]}
    if cells.get(WHICH) is not None:
        judged = JUDGED[_better(cells[WHICH], columns)]
        if judged.get("strength") and texts[0] == texts[1]:
            reason = f"is the same text as {columns[FIRST]}, so it says nothing about which is better"
            raise BadRow(columns[SECOND], reason)
        made["preferences"] = [{"a": "a", "b": "b", **judged}]
    return made


def numbered(columns: Mapping) -> bool:
    """Whether the columns of the two responses are numbered 1 and 2, so that these numbers name them."""
    return columns[FIRST].endswith("1") and columns[SECOND].endswith("2")


def may_say_which(values: Sequence[Any], by_number: bool) -> bool:
    """Whether a column with these values may name the better response: a number other than 1 and 2 is a score, a strength, or a place that
    is counted from 0. True and false are no names, and numbers alone are names only `by_number`."""
    if any(_number(value) not in (None, *NUMBERS) or isinstance(value, bool) for value in values):
        return False
    given = [value for value in values if value not in (None, "")]
    return by_number or not given or any(_number(value) is None for value in given)


def _number(value: Any) -> float | None:
    """The finite number that the value is, also as text."""
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and isfinite(number) else None


def _better(value: Any, columns: Mapping) -> str:
    """The side that the value names by its column, its letter, its model (`model_a`) or its number, or that neither is better."""
    said = str(value).strip().lower()
    named = [side for side in (FIRST, SECOND) if said == columns[side].lower()]
    if len(named) > 1:
        raise BadRow(columns[WHICH], f"must say which response is better, and {value!r} names the columns of both")
    if named:
        return named[0]
    if said in LETTERS:
        return _lettered(columns)[LETTERS[said]]
    by_number = numbered(columns)
    number = _number(value) if by_number else None
    if number is not None:
        return _numbered(number, columns)
    if said not in WORDS:
        known = "a or b, 1 or 2, or tie" if by_number else "a or b, or tie"
        raise BadRow(columns[WHICH], f"must say which response is better: {known}; found {value!r}")
    return WORDS[said]


def _numbered(number: float, columns: Mapping) -> str:
    if number not in NUMBERS:
        reason = f"must say which response is better: a or b, 1 or 2, or tie; found {number:g}"
        doubt = (
            "A 1 of this column may be a place that is counted from 0, or a score, so no row of the file is imported"
        )
        raise BadRow(columns[WHICH], f"{reason}. {doubt}. Write a or b, or map no column to {WHICH}", doubts_all=True)
    return NUMBERS[number]


def _lettered(columns: Mapping) -> Mapping:
    """Letter -> side. If a person has mapped the columns the other way round, a letter still names the column that ends with it."""
    first, second = (columns[side].lower() for side in (FIRST, SECOND))
    crossed = first[:-1] == second[:-1] and first[-1:] + second[-1:] == "ba"
    return {"a": SECOND, "b": FIRST} if crossed else {"a": FIRST, "b": SECOND}
