"""Short texts that people give: names, remarks, reasons."""

from ninja import Schema
from pydantic import ConfigDict

from ..problems import Invalid

NEAR_END = 40  # characters
NO_NUL = "holds a NUL character, which cannot be stored"


class RenameIn(Schema):
    model_config = ConfigDict(extra="forbid")

    name: str


def one_line(text: str, most: int, message: str, field: str = "name") -> str:
    """A name without extra spaces. Raises Invalid with `message` at `field` if it is empty, has more than `most` characters, or holds a
    NUL."""
    return _of_length(" ".join(text.split()), most, message, field)


def several_lines(text: str, most: int, message: str, field: str) -> str:
    """Like `one_line`, for a text that may have several lines."""
    return _of_length(text.strip(), most, message, field)


def shortened(text: str, most: int) -> str:
    """The text, or its first characters and an ellipsis, at most `most` together. It ends between two words, if one ends near there: paths
    and texts without spaces, such as Chinese ones, end where there is no more room."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    begin = text[: most - 2]
    last = begin.rfind(" ", most - NEAR_END)
    return f"{begin[:last] if last > 0 else begin} …"


def _of_length(text: str, most: int, message: str, field: str) -> str:
    if not 0 < len(text) <= most:
        raise Invalid(message, {field: f"must have 1 to {most:,} characters"})
    if "\0" in text:
        raise Invalid(message, {field: NO_NUL})
    return text
