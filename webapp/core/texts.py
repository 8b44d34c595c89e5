"""Short texts that people give: names, remarks, reasons."""

from .problems import Invalid


def one_line(text: str, most: int, message: str, field: str = "name") -> str:
    """A name, without needless blanks. Raises Invalid with `message` at `field` where it is empty or has more than `most` characters."""
    return _of_length(" ".join(text.split()), most, message, field)


def stripped(text: str, most: int, message: str, field: str) -> str:
    """The same of a text that may have lines."""
    return _of_length(text.strip(), most, message, field)


def _of_length(text: str, most: int, message: str, field: str) -> str:
    if not 0 < len(text) <= most or "\0" in text:
        raise Invalid(message, {field: f"must have 1 to {most:,} characters"})
    return text
