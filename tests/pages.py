"""The text that a page shows."""

from typing import Any


def page_html(response: Any) -> str:
    """The HTML of a response on one line, because line breaks in a template have no meaning."""
    return " ".join(response.content.decode().split())
