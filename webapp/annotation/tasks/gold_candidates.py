"""Known answers for gold tasks, found in what is there already: labels of the data, or answers that are all alike.

Everything is in the subject's frame, as `task_services.set_gold` takes it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import kinds
from . import gold_answers

Content = Mapping[str, Any]
# kinds whose data brings what fits their answers: labels of pairs, rubrics, the reasons of a preference
LABELLED = frozenset(name for name, kind in kinds.KINDS.items() if kind.labelled)


def from_labels(kind: str, subject: Content, content: Content, least: int = 1) -> dict[str, Any] | None:
    """What at least `least` people say of this subject in the data, if they agree; None where they do not."""
    return kinds.of(kind).from_labels(subject, content, least)


def from_answers(
    kind: str, settings: kinds.Settings, contents: Sequence[dict[str, Any]], least: int = 2
) -> dict[str, Any] | None:
    """The first of `contents` if there are `least` of them and each would be right by it, and it by each.

    None for kinds whose answers are matched by meaning: of those, see what stands for the task.
    """
    if kind in gold_answers.MATCHED or len(contents) < max(least, 1):
        return None
    first, *others = contents
    if not all(
        gold_answers.right(kind, settings, a, b) for other in others for a, b in ((first, other), (other, first))
    ):
        return None
    return bare(kind, first)


def bare(kind: str, content: Content) -> dict[str, Any]:
    """An answer without what is one's own (notes, dimensions, reasons for a choice): what another is held against."""
    return kinds.of(kind).bare(content)
