"""JSON Lines that this program wrote. A line ends only at a line feed.

`str.splitlines` also splits at U+2028 and similar characters, which JSON may hold in its strings.
"""

import json
from typing import Any


def lines(text: str) -> list[str]:
    """The lines that are not blank, without their line feeds."""
    return [line for line in text.split("\n") if line.strip()]


def rows(text: str) -> list[Any]:
    """The values of the lines. Raises ValueError if a line is not JSON."""
    return [json.loads(line) for line in lines(text)]
