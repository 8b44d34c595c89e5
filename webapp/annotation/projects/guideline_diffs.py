"""What changed between two versions of a text, line by line."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ..models import Guidelines

CONTEXT = 2  # unchanged lines around a change


@dataclass(frozen=True)
class Line:
    """`kind`: same, added, removed or gap (unchanged lines left out)."""

    kind: str
    text: str = ""


@dataclass(frozen=True)
class Version:
    """One version of the guidelines and what it changed about the one before; `lines` is empty for the first."""

    row: Guidelines
    lines: list[Line]

    @property
    def added(self) -> int:
        return sum(line.kind == "added" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.kind == "removed" for line in self.lines)


def history(versions: Sequence[Guidelines]) -> list[Version]:
    """`versions` newest first, as they are stored; the last one has nothing to be compared with."""
    pairs = zip(versions, [*versions[1:], None], strict=True)
    return [Version(row, lines(before.text, row.text) if before else []) for row, before in pairs]


def lines(before: str, after: str) -> list[Line]:
    """The changed lines with a little of what stands around them."""
    old, new = before.splitlines(), after.splitlines()
    found: list[Line] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        if found:
            found.append(Line("gap"))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                found += [Line("same", text) for text in old[i1:i2]]
            else:
                found += [Line("removed", text) for text in old[i1:i2]]
                found += [Line("added", text) for text in new[j1:j2]]
    return found
