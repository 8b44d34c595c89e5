"""Short texts that people give: names, remarks, reasons."""

from ninja import Schema
from pydantic import ConfigDict

from ..problems import Invalid

NO_NUL = "holds a NUL character, which cannot be stored"


class RenameIn(Schema):
    model_config = ConfigDict(extra="forbid")

    name: str


def one_line(text: str, most: int, message: str, field: str = "name") -> str:
    """A name without extra spaces. Raises Invalid with `message` at `field` if it is empty, has more than `most` characters, or holds a
    NUL."""
    return _of_length(" ".join(text.split()), most, message, field)


def several_lines(text: str, most: int, message: str, field: str) -> str:
    """The same for a text that may have several lines."""
    return _of_length(text.strip(), most, message, field)


def _of_length(text: str, most: int, message: str, field: str) -> str:
    if not 0 < len(text) <= most:
        raise Invalid(message, {field: f"must have 1 to {most:,} characters"})
    if "\0" in text:
        raise Invalid(message, {field: NO_NUL})
    return text
