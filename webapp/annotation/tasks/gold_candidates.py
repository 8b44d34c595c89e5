"""Known answers for gold tasks from existing data: labels of the data, or answers that are all alike.

Everything is in the subject's frame, as `task_services.set_gold` takes it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import kinds
from . import gold_answers

Content = Mapping[str, Any]
# kinds whose data has labels that fit their answers: labels of pairs, rubrics, the reasons of a preference
LABELLED = frozenset(name for name, kind in kinds.KINDS.items() if kind.labelled)


def from_labels(kind: str, subject: Content, content: Content, least: int = 1) -> dict[str, Any] | None:
    """The judgement of at least `least` people about this subject in the data, if they agree; otherwise None."""
    return kinds.get_kind(kind).from_labels(subject, content, least)


def from_answers(
    kind: str, settings: kinds.Settings, contents: Sequence[dict[str, Any]], least: int = 2
) -> dict[str, Any] | None:
    """The first of `contents` if there are `least` of them, each is right by it, and it is right by each.

    None for kinds whose answers are matched by meaning: use the task's resolution for those.
    """
    if kind in gold_answers.MATCHED or len(contents) < max(least, 1):
        return None
    first, *others = contents
    if not all(
        gold_answers.is_right(kind, settings, a, b) for other in others for a, b in ((first, other), (other, first))
    ):
        return None
    return bare(kind, first)


def bare(kind: str, content: Content) -> dict[str, Any]:
    """An answer without personal parts (notes, dimensions, reasons for a choice), to compare others with."""
    return kinds.get_kind(kind).bare(content)
