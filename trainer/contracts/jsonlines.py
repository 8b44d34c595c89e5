"""JSON Lines that we wrote ourselves. A line ends at a line feed and nowhere else.

`str.splitlines` also ends one at U+2028 and its kind, which JSON leaves as they are in strings.
"""

import json
from typing import Any


def lines(text: str) -> list[str]:
    """Those that are not blank, without their line feeds."""
    return [line for line in text.split("\n") if line.strip()]


def rows(text: str) -> list[Any]:
    """What the lines hold. Raises ValueError where one is no JSON."""
    return [json.loads(line) for line in lines(text)]
