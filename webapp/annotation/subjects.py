"""From an example to the things to judge about it, and which of them come first.

`content` is an example's canonical JSON as a dict. Pure: the rows are written by `services.tasks`.
"""

from collections.abc import Mapping, Sequence
from math import log
from random import Random
from typing import Any

from webapp.datasets.curation.criteria import MET, graded

from . import kinds, shown
from .models import Project

Content = Mapping[str, Any]
Subject = dict[str, Any]
PAIRS = 3  # at most so many per example, where no preference says which to compare
STEPS = 7  # of a strength, -3..3
# A rank is LEVELS * score, then the place in the dataset, then the place in the example; exact in a float below 2**53
LEVELS, LEVEL, PLACES = 10_000, 1e9, 256


def of(kind: str, content: Content) -> list[Subject]:
    """The subjects of one example; [] where it has nothing of this kind to judge.

    pairwise: the pairs its preferences name, else neighbouring responses, at most PAIRS; in a study its first pair, once
    in each arm. rubric: the example.
    grading: each response, if there is a rubric. ranking: all responses, if there are two. rating: each response.
    rationale: each preference that has reasons or a `meta.rationale` text, else each pair, without a text.
    """
    ids = [one["id"] for one in content.get("responses", ())]
    if kind == "pairwise":
        pairs = _pairs(content, ids)
        arms = shown.arms(content)
        return [{**pair, "arm": arm} for pair in pairs[:1] for arm in arms] if arms else pairs
    if kind == "rubric":
        return [{}]
    if kind == "grading":
        return [{"response": side} for side in ids] if shown.criteria(content) else []
    if kind == "ranking":
        return [{"responses": ids[: kinds.MAX_RESPONSES]}] if len(ids) > 1 else []
    if kind == "rating":
        return [{"response": side} for side in ids]
    return _rationales(content, ids)


def _pairs(content: Content, ids: Sequence[str]) -> list[Subject]:
    named: dict[frozenset[str], Subject] = {}
    for one in content.get("preferences", ()):
        named.setdefault(frozenset((one["a"], one["b"])), {"a": one["a"], "b": one["b"]})
    return list(named.values()) or [{"a": a, "b": b} for a, b in zip(ids, ids[1:], strict=False)][:PAIRS]


def _rationales(content: Content, ids: Sequence[str]) -> list[Subject]:
    """`preference` says that a text is given, whose words may name the sides: they are then shown as they are."""
    named = [
        {"a": one["a"], "b": one["b"], "preference": index} for index, one in enumerate(content.get("preferences", ()))
    ]
    given = [subject for subject in named if shown.rationale(subject, content)]
    if given:
        return given
    pairs = _pairs(content, ids)
    if pairs and shown.rationale({"preference": None}, content):
        return [{**pairs[0], "preference": None}]
    return pairs


def rank(strategy: str, seed: int, place: tuple[int, int], subject: Subject, content: Content) -> float:
    """Where the subject stands in the queue; `place` is (position in the dataset, position in the example).

    order: as in the dataset. random: a draw from (seed, key, subject), the same however often it is asked.
    uncertainty and disagreement: by `uncertainty` and `disagreement`, highest first, equals as in the dataset; what has
    no such score comes last.
    """
    if strategy == Project.Strategy.RANDOM:
        return Random(f"{seed}:{content['key']}:{sorted(subject.items())}").random()  # noqa: S311
    at = place[0] + min(place[1], PLACES - 1) / PLACES
    if strategy == Project.Strategy.ORDER:
        return at
    score = (
        uncertainty(subject, content) if strategy == Project.Strategy.UNCERTAINTY else disagreement(subject, content)
    )
    return _level(score) * LEVEL + at


def uncertainty(subject: Subject, content: Content) -> float | None:
    """0 (certain) .. 1: the number in `meta.uncertainty`, else the entropy of the strengths that its raters gave, as a
    share of the largest possible (log 7). Of the pair that the subject names, or else the mean over the example's
    pairs. None with fewer than two raters: one voice cannot disagree."""
    given = content.get("meta", {}).get("uncertainty")
    if isinstance(given, int | float) and not isinstance(given, bool):
        return float(given)
    found = []
    for pair in _scored_pairs(subject, content):
        strengths = shown.strengths(pair, content.get("preferences", ()))
        if len(strengths) > 1:
            found.append(_entropy(strengths) / log(STEPS))
    return sum(found) / len(found) if found else None


def disagreement(subject: Subject, content: Content) -> float | None:
    """0 .. 1: how far a judge's strength lies from the people's mean (`shown.judge_strength`), as a share of the largest
    possible difference (6). Of the pair that the subject names, or else the mean over the example's pairs."""
    found = []
    for pair in _scored_pairs(subject, content):
        judge, human = shown.judge_strength(pair, content), shown.human_strength(pair, content)
        if judge is not None and human is not None:
            found.append(abs(judge - human) / (STEPS - 1))
    return sum(found) / len(found) if found else None


def at_odds(
    kind: str, subject: Subject, judged: Content | None, content: Content, answers: Sequence[Content] = ()
) -> float | None:
    """0 .. 1: how far what a judge says of this task lies from what people said of it, in the dataset or in `answers`
    (contents in the subject's frame); None where one of them said nothing.

    Of a pair the distance between the judge (without `judged`, those in the dataset) and the people's mean, as in
    `disagreement`; of a graded response the share of criteria on which most people said otherwise.
    """
    if kind == Project.Kind.PAIRWISE:
        judge = shown.judge_strength(subject, content) if judged is None else judged["strength"]
        people = shown.human_strengths(subject, content)
        people += [answer["strength"] for answer in answers if answer.get("strength") is not None]
        return abs(judge - sum(people) / len(people)) / (STEPS - 1) if people and judge is not None else None
    votes, differ = graded(content.get("meta", {})), []
    for answer in answers:
        for grade in answer["grades"]:
            if grade["verdict"] in MET:
                votes.setdefault((subject["response"], grade["criterion"]), []).append(MET[grade["verdict"]])
    for grade in judged["grades"] if judged else ():
        given = votes.get((subject["response"], grade["criterion"]), [])
        if 2 * sum(given) != len(given):
            differ.append((2 * sum(given) > len(given)) != (grade["verdict"] == "met"))
    return sum(differ) / len(differ) if differ else None


def ranked(rank: float, score: float | None) -> float:
    """The rank of a task among those served by their score, whose rank was `rank` so far."""
    return _level(score) * LEVEL + rank % LEVEL


def _level(score: float | None) -> int:
    return LEVELS + 1 if score is None else round((1 - min(max(score, 0.0), 1.0)) * LEVELS)


def _scored_pairs(subject: Subject, content: Content) -> list[Subject]:
    return [subject] if "a" in subject else _pairs(content, [one["id"] for one in content.get("responses", ())])


def _entropy(values: Sequence[float]) -> float:
    shares = [values.count(value) / len(values) for value in set(values)]
    return -sum(share * log(share) for share in shares)
