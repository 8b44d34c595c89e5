"""The labels that an example contains already: its criteria, the rubrics of a study, a rationale, and the strengths that people and
judges gave its pairs. `content` is an example's canonical JSON as a dict."""

from collections.abc import Mapping, Sequence
from typing import Any

Content = Mapping[str, Any]
JUDGE = "judge"  # preferences by the rater "judge" or "judge:NAME" are a model's, not a person's
PAIRS = 3  # at most this many per example, if no preference says which to compare


def response_ids(content: Content) -> list[str]:
    return [one["id"] for one in content.get("responses", ())]


def pairs(content: Content) -> list[dict[str, Any]]:
    """The pairs that its preferences name, each once; else neighbouring responses, at most PAIRS."""
    named: dict[frozenset[str], dict[str, Any]] = {}
    for one in content.get("preferences", ()):
        named.setdefault(frozenset((one["a"], one["b"])), {"a": one["a"], "b": one["b"]})
    ids = response_ids(content)
    return list(named.values()) or [{"a": a, "b": b} for a, b in zip(ids, ids[1:], strict=False)][:PAIRS]


def criteria(content: Content) -> list[dict[str, Any]]:
    rubric = content.get("rubric") or {}
    return list(rubric.get("criteria", ()))


def arms(content: Content) -> dict[str, list[dict[str, Any]]]:
    """The rubrics of a study by the name of their arm, from `meta.study.arms`; {} if the example is in no study."""
    study = content.get("meta", {}).get("study")
    found = study.get("arms") if isinstance(study, dict) else None
    return found if isinstance(found, dict) else {}


def rationale(subject: Content, content: Content) -> str | None:
    """The text to split into reasons: `meta.rationale` (one for the example, or a list with one per preference), else the reasons of the
    subject's preference, one a line. None: the person writes it."""
    if "preference" not in subject:
        return None
    index = subject["preference"]
    given = content.get("meta", {}).get("rationale")
    if isinstance(given, list) and index is not None and index < len(given):
        given = given[index]
    if isinstance(given, str) and given.strip():
        return given
    preferences = content.get("preferences", ())
    if index is None or index >= len(preferences):
        return None
    return "\n".join(reason["text"] for reason in preferences[index].get("reasons", ())) or None


def judge_strength(subject: Content, content: Content) -> float | None:
    """Mean strength (-3..3, in the subject's frame) that judges gave this pair. Judges' strengths are the example's preferences with a
    judge as rater, and `meta.judge`: a list of {"a", "b", "strength"}."""
    given = content.get("meta", {}).get("judge")
    listed = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    judged = [one for one in content.get("preferences", ()) if is_judge(one)] + listed
    return mean_strength(subject, judged)


def human_strength(subject: Content, content: Content) -> float | None:
    """Mean strength that people gave this pair."""
    found = human_strengths(subject, content)
    return sum(found) / len(found) if found else None


def human_strengths(subject: Content, content: Content) -> list[float]:
    return strengths(subject, [one for one in content.get("preferences", ()) if not is_judge(one)])


def is_judge(preference: Content) -> bool:
    rater = str(preference.get("rater", ""))
    return rater == JUDGE or rater.startswith(f"{JUDGE}:")


def mean_strength(subject: Content, preferences: Sequence[Content]) -> float | None:
    found = strengths(subject, preferences)
    return sum(found) / len(found) if found else None


def strengths(subject: Content, preferences: Sequence[Content]) -> list[float]:
    """The strength of each preference about the subject's two responses, with the sign changed if it names them the other way round."""
    a, b = subject.get("a"), subject.get("b")
    found = []
    for one in preferences:
        strength = one.get("strength")
        if isinstance(strength, int | float) and (one.get("a"), one.get("b")) in ((a, b), (b, a)):
            found.append(float(strength if one.get("a") == a else -strength))
    return found
