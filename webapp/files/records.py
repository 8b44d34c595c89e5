"""The results of reading a file of rows: the rows, the start of a file, and what is wrong with a line."""

from dataclasses import dataclass, replace
from typing import Any

Row = dict[str, Any]
LONGEST_REASON = 1_000  # characters


@dataclass(frozen=True)
class RowProblem:
    """The reason why one line is refused. `field` is a dotted path, empty when the whole line is at fault; `file` is only named if there
    are several. `doubts_all`: other lines may have been misread for the same reason, so an import keeps none."""

    line: int
    field: str
    reason: str
    file: str = ""
    doubts_all: bool = False

    def short(self) -> "RowProblem":
        """The problem with its quotation of the row cut: a reason is read by people. A NUL, which Postgres cannot store, is named."""
        return replace(self, field=_cut(self.field), reason=_cut(self.reason))

    def told(self) -> dict[str, int | str]:
        """As reports list it."""
        told: dict[str, int | str] = {"line": self.line, "field": self.short().field, "reason": self.short().reason}
        return told | {"file": self.file} if self.file else told


def _cut(text: str) -> str:
    text = text.replace("\0", "\\0")
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"


class BadRow(ValueError):
    """Raised by a converter: the row cannot become an example because of `field`. `doubts_all`: see RowProblem."""

    def __init__(self, field: str, reason: str, *, doubts_all: bool = False) -> None:
        self.field = field
        self.reason = reason
        self.doubts_all = doubts_all
        super().__init__(f"{field}: {reason}")


class Skip(Exception):
    """Raised by a converter: the row says nothing that an earlier row of its example has not said."""


@dataclass(frozen=True)
class FileHead:
    """The start of a file, as far as detection needs it: its name and its first rows as objects."""

    name: str
    rows: tuple[Row, ...]
