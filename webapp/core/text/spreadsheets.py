"""CSV that a spreadsheet may open: no text of somebody else's is run as a formula."""

import csv
import io
from collections.abc import Iterable
from typing import Any

# what a spreadsheet would run begins like this; the last four are wide forms of the first
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def guarded(value: Any) -> Any:
    """Text that a spreadsheet would run with an apostrophe before it; everything else as it is."""
    return "'" + value if isinstance(value, str) and value.startswith(FORMULA) else value


def lines(rows: Iterable[Iterable[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([guarded(value) for value in row] for row in rows)
    return out.getvalue()
