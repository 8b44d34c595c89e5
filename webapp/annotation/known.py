"""Known answers for gold tasks, found in what is there already: labels of the data, or answers that are all alike.

Everything is in the subject's frame, as `services.tasks.set_gold` takes it.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from . import gold, kinds, shown

Content = Mapping[str, Any]
KEPT = ("verdict", "strength", "grades", "tiers", "ratings")  # what a known answer says of a choice
# kinds whose data brings what fits their answers: labels of pairs, rubrics, the reasons of a preference
LABELLED = frozenset({"pairwise", "rubric", "rationale"})


def from_labels(kind: str, subject: Content, content: Content, least: int = 1) -> dict[str, Any] | None:
    """What at least `least` people say about this pair, if they all agree on who wins; None where they do not.

    The strength is the median of theirs. Preferences by judges are a model's view and do not count. Of a rubric's author
    it is the example's rubric, of a rationale the reasons of its preference, where there are any.
    """
    if kind == "rubric":
        return bare(kind, {"rubric": content["rubric"]}) if shown.criteria(content) else None
    if kind == "rationale":
        return _reasons(subject, content)
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


def _reasons(subject: Content, content: Content) -> dict[str, Any] | None:
    index, preferences = subject.get("preference"), content.get("preferences", ())
    if index is None or index >= len(preferences) or not preferences[index].get("reasons"):
        return None
    return bare("rationale", preferences[index])


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
    """The first of `contents` if there are `least` of them and each would be right by it, and it by each.

    None for kinds whose answers are matched by meaning: of those, see what stands for the task.
    """
    if kind in gold.MATCHED or len(contents) < max(least, 1):
        return None
    first, *others = contents
    if not all(gold.right(kind, settings, a, b) for other in others for a, b in ((first, other), (other, first))):
        return None
    return bare(kind, first)


def bare(kind: str, content: Content) -> dict[str, Any]:
    """An answer without what is one's own (notes, dimensions, reasons for a choice): what another is held against."""
    if kind == "rubric":
        return {"rubric": content["rubric"]}
    if kind == "rationale":
        return {"reasons": [{"text": reason["text"]} for reason in content["reasons"]]}
    kept = {name: content[name] for name in KEPT if name in content}
    if "grades" in kept:
        kept["grades"] = [{"criterion": g["criterion"], "verdict": g["verdict"]} for g in kept["grades"]]
    return kept
