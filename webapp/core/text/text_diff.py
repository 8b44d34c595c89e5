"""The changes between two texts, line by line."""

from dataclasses import dataclass
from difflib import SequenceMatcher

CONTEXT = 2  # unchanged lines around a change
MANY = 1_000  # lines: in longer texts, frequent lines are not anchors, because the time would grow with the square
MOST = 5_000  # lines of either text that are compared


@dataclass(frozen=True)
class DiffLine:
    """`kind`: same, added, removed or gap (unchanged lines left out)."""

    kind: str
    text: str = ""


def lines(before: str, after: str) -> list[DiffLine]:
    """The changed lines with a few lines around them."""
    old, new = before.splitlines()[:MOST], after.splitlines()[:MOST]
    found: list[DiffLine] = []
    matcher = SequenceMatcher(None, old, new, autojunk=max(len(old), len(new)) > MANY)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if found:
            found.append(DiffLine("gap"))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                found += [DiffLine("same", text) for text in old[i1:i2]]
            else:
                found += [DiffLine("removed", text) for text in old[i1:i2]]
                found += [DiffLine("added", text) for text in new[j1:j2]]
    return found
