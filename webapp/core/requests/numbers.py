"""Numbers in requests."""


def whole_number(text: str, digits: int = 18) -> int | None:
    """The number that `text` writes with at most this many ASCII digits; None for anything else.

    A request may send digits of any length, and Python refuses to read more than some thousands of them.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
