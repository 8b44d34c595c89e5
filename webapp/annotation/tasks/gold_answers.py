"""Whether an answer to a task with a known answer is right. Both are in the subject's frame.

If the answers can be compared at once, the kind does it: which side wins, which criteria are met, which response is best, which values were
chosen. The criteria of a rubric and the reasons of a rationale can say the same in other words, so a job matches them by meaning
(`agreement.matching`): an answer is right if it has enough of the known ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import kinds

MATCHED = frozenset(name for name, kind in kinds.KINDS.items() if kind.by_meaning)


def is_right(kind: str, settings: kinds.Settings, given: dict[str, Any], known: dict[str, Any]) -> bool | None:
    """Whether the answer is right; None if only matching by meaning can tell."""
    return kinds.get_kind(kind).right(settings, given, known)


def matched(
    settings: Mapping[str, Any], known: Sequence[str], groups: Sequence[Sequence[Sequence[int]]], matcher: str
) -> dict[str, Any]:
    """The known items in an answer, stored as `Answer.gold_detail`: `found`, the indices of those it has; `of`, the number
    of known items; their quotient `recall` (recall of RubricBench), the `least` recall that is right, the `matcher`.

    `groups` hold [list, index]: list 0 is the known one, list 1 the answer's. Further items of the answer do not count against it.
    """
    found = [
        index for group in groups if {0, 1} <= {which for which, _ in group} for which, index in group if not which
    ]
    least = kinds.Settings.model_validate(settings).gold_recall
    recall = len(found) / len(known)
    return {"found": sorted(found), "of": len(known), "recall": recall, "least": least, "matcher": matcher}
