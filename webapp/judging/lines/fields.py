"""Reads the fields that lines of judgements share. A problem names its field."""

from typing import Any

from .sides import side


class LineProblem(ValueError):
    """A line that cannot be used: the message names the field and what was expected."""

    def __init__(self, field: str, reason: str) -> None:
        self.field, self.reason = field, reason
        super().__init__(f"field {field!r}: {reason}" if field else reason)


def fields(row: Any, expected: str) -> dict[str, Any]:
    """The line as an object."""
    if not isinstance(row, dict):
        raise LineProblem("", f"expected an object with {expected}, found {type(row).__name__}")
    return row


def name(row: dict[str, Any], field: str, default: str | None = None) -> str:
    """A name: text or a whole number. A missing or empty one is `default`; without a default it is a problem."""
    value = row.get(field)
    if value is None or value == "":
        if default is None:
            raise LineProblem(field, "is missing")
        return default
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise LineProblem(field, f"expected a name or a whole number, found {value!r:.60}")
    return str(value)


def verdict(row: dict[str, Any], field: str, numbers: bool = False) -> int | None:
    """The side that `field` names; None if it is null or absent."""
    try:
        return side(row.get(field), numbers)
    except ValueError as error:
        raise LineProblem(field, str(error)) from error
