"""Whether an answer to a task with a known answer is right. Both are in the subject's frame.

Only what can be compared without judgement has a check: which side wins, which criteria are met, which response is
best, which values were chosen. An authored rubric or a rationale has none.
"""

from typing import Any

from . import kinds

CHECKED = frozenset({"pairwise", "grading", "ranking", "rating"})
NEAR = 1  # on a scale of more than three values, the neighbouring one is right too


def right(kind: str, settings: kinds.Settings, given: dict[str, Any], known: dict[str, Any]) -> bool | None:
    """None where the kind has no check."""
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
