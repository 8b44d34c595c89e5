"""The changes between the versions of a project's guidelines."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.core.text.text_diff import DiffLine, lines

from ..models import Guidelines


@dataclass(frozen=True)
class Version:
    """One version of the guidelines and its changes to the previous one; `lines` is empty for the first."""

    row: Guidelines
    lines: list[DiffLine]

    @property
    def added(self) -> int:
        return sum(line.kind == "added" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.kind == "removed" for line in self.lines)


def history(versions: Sequence[Guidelines]) -> list[Version]:
    """`versions` newest first, as they are stored; the first version has nothing to be compared with."""
    pairs = zip(versions, [*versions[1:], None], strict=True)
    return [Version(row, lines(before.text, row.text) if before else []) for row, before in pairs]
