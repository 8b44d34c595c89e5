"""The text that a page shows."""

from typing import Any


def shown(response: Any) -> str:
    """The HTML of a response on one line, because the line breaks of a template mean nothing."""
    return " ".join(response.content.decode().split())
