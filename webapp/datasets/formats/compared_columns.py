"""Two columns with a response each, and a third that says which one is better."""

from collections.abc import Iterable
from typing import Any

from webapp.files.records import BadRow, Row

from .convert import Mapping
from .fields import CHOSEN_STRENGTH

FIRST, SECOND = "response_a", "response_b"
WHICH = "preference"
WORDS = {
    **dict.fromkeys(("a", "first", "left"), FIRST),
    **dict.fromkeys(("b", "second", "right"), SECOND),
    **dict.fromkeys(("tie", "same", "equal", "draw"), "tie"),
    **dict.fromkeys(("neither", "both bad", "both_bad", "bothbad", "tie (bothbad)"), "both_bad"),
}
NUMBERS = {
    "1": FIRST,
    "2": SECOND,
}  # of columns that are numbered so; elsewhere a 1 may be the second, counted from 0, or a strength
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


def may_say_which(values: Iterable[Any]) -> bool:
    """Whether a column with these values may name the better response: a number other than 1 and 2 is a score, a strength, or a place that
    is counted from 0."""
    return all(_number(value) in (None, 1, 2) for value in values)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _better(value: Any, columns: Mapping) -> str:
    """The side that the value names by its letter, its column, its model (`model_a`) or its number, or that neither is better."""
    said = f"{value:g}" if isinstance(value, float) else str(value).strip().lower()
    for side in (FIRST, SECOND):
        if said in (side, side.replace("response", "model"), columns[side].lower()):
            return side
    numbered = columns[FIRST].endswith("1") and columns[SECOND].endswith("2")
    words = WORDS | NUMBERS if numbered else WORDS
    if said not in words:
        known = "a or b, 1 or 2, or tie" if numbered else "a or b, or tie"
        raise BadRow(columns[WHICH], f"must say which response is better: {known}; found {value!r}")
    return words[said]
