"""From an example to the things to judge about it, and which of them come first.

`content` is an example's canonical JSON as a dict. Pure: the rows are written by `projects.task_services`.
"""

from collections.abc import Mapping, Sequence
from math import log
from random import Random
from typing import Any

from .. import kinds
from ..kinds import example_labels
from ..models import Project

Content = Mapping[str, Any]
Subject = dict[str, Any]
STEPS = 7  # of a strength, -3..3
# A rank is LEVELS * score, then the place in the dataset, then the place in the example; exact in a float below 2**53
LEVELS, LEVEL, PLACES = 10_000, 1e9, 256


def of(kind: str, content: Content) -> list[Subject]:
    """The subjects of one example; [] where it has nothing of this kind to judge."""
    return kinds.of(kind).subjects(content)


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
        strengths = example_labels.strengths(pair, content.get("preferences", ()))
        if len(strengths) > 1:
            found.append(_entropy(strengths) / log(STEPS))
    return sum(found) / len(found) if found else None


def disagreement(subject: Subject, content: Content) -> float | None:
    """0 .. 1: how far a judge's strength lies from the people's mean (`labels.judge_strength`), as a share of the largest
    possible difference (6). Of the pair that the subject names, or else the mean over the example's pairs."""
    found = []
    for pair in _scored_pairs(subject, content):
        judge, human = example_labels.judge_strength(pair, content), example_labels.human_strength(pair, content)
        if judge is not None and human is not None:
            found.append(abs(judge - human) / (STEPS - 1))
    return sum(found) / len(found) if found else None


def at_odds(
    kind: str, subject: Subject, judged: Content | None, content: Content, answers: Sequence[Content] = ()
) -> float | None:
    """0 .. 1: how far what a judge says of this task lies from what people said of it, in the dataset or in `answers`
    (contents in the subject's frame); None where one of them said nothing."""
    return kinds.of(kind).at_odds(subject, judged, content, answers)


def ranked(rank: float, score: float | None) -> float:
    """The rank of a task among those served by their score, whose rank was `rank` so far."""
    return _level(score) * LEVEL + rank % LEVEL


def _level(score: float | None) -> int:
    return LEVELS + 1 if score is None else round((1 - min(max(score, 0.0), 1.0)) * LEVELS)


def _scored_pairs(subject: Subject, content: Content) -> list[Subject]:
    return [subject] if "a" in subject else example_labels.pairs(content)


def _entropy(values: Sequence[float]) -> float:
    shares = [values.count(value) / len(values) for value in set(values)]
    return -sum(share * log(share) for share in shares)
