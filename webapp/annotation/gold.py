"""Whether an answer to a task with a known answer is right. Both are in the subject's frame.

What can be compared at once is: which side wins, which criteria are met, which response is best, which values were
chosen. The criteria of a rubric and the reasons of a rationale say the same in other words, so a job matches them by
meaning (`services.matching`): right is who found enough of the known ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from . import kinds

MATCHED = frozenset({"rubric", "rationale"})
NEAR = 1  # on a scale of more than three values, the neighbouring one is right too


def right(kind: str, settings: kinds.Settings, given: dict[str, Any], known: dict[str, Any]) -> bool | None:
    """None where it takes matching to tell."""
    if kind == "pairwise":
        return _winner(given) == _winner(known)
    if kind == "grading":
        return _grades(known).items() <= _grades(given).items()
    if kind == "ranking":
        return _order(settings, given) == _order(settings, known)
    if kind == "rating":
        return all(
            _rated(settings, name, given["ratings"].get(name), value) for name, value in known["ratings"].items()
        )
    return None


def matched(
    settings: Mapping[str, Any], known: Sequence[str], groups: Sequence[Sequence[Sequence[int]]], matcher: str
) -> dict[str, Any]:
    """How an answer stands to the items `known`, stored as `Answer.gold_detail`: `found`, the indices of those it has;
    `of`, how many there are; their quotient `recall` (recall of RubricBench), the `least` that is right, the `matcher`.

    `groups` hold [list, index]: list 0 is the known one, list 1 the answer's. What the answer says besides costs nothing.
    """
    found = [
        index for group in groups if {0, 1} <= {which for which, _ in group} for which, index in group if not which
    ]
    least = kinds.Settings.model_validate(settings).gold_recall
    recall = len(found) / len(known)
    return {"found": sorted(found), "of": len(known), "recall": recall, "least": least, "matcher": matcher}


def _winner(answer: dict[str, Any]) -> tuple[str, int | None]:
    """The verdict and the direction: how strong a preference is, is a matter of taste."""
    strength = answer.get("strength")
    return answer.get("verdict", "compared"), None if strength is None else (strength > 0) - (strength < 0)


def _grades(answer: dict[str, Any]) -> dict[str, str]:
    return {grade["criterion"]: grade["verdict"] for grade in answer["grades"]}


def _order(settings: kinds.Settings, answer: dict[str, Any]) -> list[list[str]]:
    tiers = [sorted(tier) for tier in answer["tiers"]]
    return tiers[:1] if settings.ranking == "best" else tiers


def _rated(settings: kinds.Settings, name: str, given: int | None, known: int | None) -> bool:
    if given is None or known is None:
        return given == known
    scale = next((scale for scale in settings.scales if scale.name == name), None)
    near = NEAR if scale and scale.high - scale.low > 2 else 0
    return abs(given - known) <= near
