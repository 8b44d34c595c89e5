"""Two columns with a response each, and a third that says which one is better."""

from typing import Any

from webapp.files.records import BadRow, Row

from .convert import Mapping
from .fields import CHOSEN_STRENGTH

FIRST, SECOND = "response_a", "response_b"
WHICH = "preference"
WORDS = {
    **dict.fromkeys(("a", "1", "first", "left"), FIRST),
    **dict.fromkeys(("b", "2", "second", "right"), SECOND),
    **dict.fromkeys(("tie", "same", "equal", "draw"), "tie"),
    **dict.fromkeys(("neither", "both bad", "both_bad", "bothbad", "tie (bothbad)"), "both_bad"),
}
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
        made["preferences"] = [{"a": "a", "b": "b", **JUDGED[_better(cells[WHICH], columns)]}]
    return made


def _better(value: Any, columns: Mapping) -> str:
    """The side that the value names by its letter, its column, its model (`model_a`) or its number, or that neither is better."""
    said = f"{value:g}" if isinstance(value, float) else str(value).strip().lower()
    for side in (FIRST, SECOND):
        if said in (side, side.replace("response", "model"), columns[side].lower()):
            return side
    if said not in WORDS:
        raise BadRow(columns[WHICH], f"must say which response is better: a or b, 1 or 2, or tie; found {value!r}")
    return WORDS[said]
