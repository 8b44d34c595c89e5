"""Known answers for gold tasks, found in what is there already: labels of the data, or answers that are all alike.

Everything is in the subject's frame, as `services.tasks.set_gold` takes it.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from . import gold, kinds, shown

Content = Mapping[str, Any]
KEPT = (
    "verdict",
    "strength",
    "grades",
    "tiers",
    "ratings",
)  # what a known answer says; reasons and notes are one's own
LABELLED = frozenset({"pairwise"})  # kinds whose data brings labels that fit their answers


def from_labels(kind: str, subject: Content, content: Content, least: int = 1) -> dict[str, Any] | None:
    """What at least `least` people say about this pair, if they all agree on who wins; None where they do not.

    The strength is the median of theirs. Preferences by judges are a model's view and do not count.
    """
    if kind not in LABELLED:
        return None
    given = [one for one in content.get("preferences", ()) if _about(one, subject) and not _by_judge(one)]
    verdicts = {one.get("verdict", "compared") for one in given}
    if len(given) < max(least, 1) or len(verdicts) != 1:
        return None
    if verdicts != {"compared"}:
        return {"verdict": verdicts.pop(), "strength": None}
    strengths = [one["strength"] if one["a"] == subject["a"] else -one["strength"] for one in given]
    if len({(strength > 0) - (strength < 0) for strength in strengths}) != 1:
        return None
    return {"verdict": "compared", "strength": _rounded(median(strengths))}


def _about(preference: Content, subject: Content) -> bool:
    return {preference["a"], preference["b"]} == {subject["a"], subject["b"]}


def _by_judge(preference: Content) -> bool:
    return str(preference.get("rater", "")).split(":")[0] == shown.JUDGE


def _rounded(value: float) -> int:
    """Halves go away from zero, so that an agreed preference never becomes a tie."""
    return int(value + (0.5 if value > 0 else -0.5))


def from_answers(
    kind: str, settings: kinds.Settings, contents: Sequence[dict[str, Any]], least: int = 2
) -> dict[str, Any] | None:
    """The first of `contents` if there are `least` of them and each would be right by it, and it by each."""
    if kind not in gold.CHECKED or len(contents) < max(least, 1):
        return None
    first, *others = contents
    if not all(gold.right(kind, settings, a, b) for other in others for a, b in ((first, other), (other, first))):
        return None
    return bare(first)


def bare(content: Content) -> dict[str, Any]:
    """An answer without reasons, notes, dimensions: only what another answer is held against."""
    kept = {name: content[name] for name in KEPT if name in content}
    if "grades" in kept:
        kept["grades"] = [{"criterion": g["criterion"], "verdict": g["verdict"]} for g in kept["grades"]]
    return kept
