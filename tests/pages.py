"""What a page shows."""

from typing import Any


def shown(response: Any) -> str:
    """The HTML of a response on one line: where a template breaks its lines means nothing."""
    return " ".join(response.content.decode().split())
