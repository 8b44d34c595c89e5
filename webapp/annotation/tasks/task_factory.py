"""The subjects to judge in an example, and their order.

`content` is an example's canonical JSON as a dict. Pure functions: `projects.task_services` writes the rows.
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


def subjects_of(kind: str, content: Content) -> list[Subject]:
    """The subjects of one example; [] if it has none of this kind."""
    return kinds.get_kind(kind).subjects(content)


def rank(strategy: str, seed: int, place: tuple[int, int], subject: Subject, content: Content) -> float:
    """The rank of the subject in the queue; `place` is (position in the dataset, position in the example).

    order: as in the dataset. random: a draw from (seed, key, subject), always the same. uncertainty and disagreement: by `uncertainty` and
    `disagreement`, highest first, equal scores as in the dataset; subjects without a score come last.
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
    """0 (certain) .. 1: the number in `meta.uncertainty`, else the entropy of the raters' strengths as a share of the largest possible (log
    7). For the pair that the subject names, else the mean over the example's pairs. None with fewer than two raters, because one rater
    cannot disagree."""
    given = content.get("meta", {}).get("uncertainty")
    if isinstance(given, int | float) and not isinstance(given, bool):
        return float(min(max(given, 0), 1))  # an integer may be too large for a float
    found = []
    for pair in _scored_pairs(subject, content):
        strengths = example_labels.strengths(pair, content.get("preferences", ()))
        if len(strengths) > 1:
            found.append(_entropy(strengths) / log(STEPS))
    return sum(found) / len(found) if found else None


def disagreement(subject: Subject, content: Content) -> float | None:
    """0 .. 1: the distance of a judge's strength from the people's mean (`example_labels.judge_strength`), as a share of the largest
    possible (6). For the pair that the subject names, else the mean over the example's pairs."""
    found = []
    for pair in _scored_pairs(subject, content):
        judge, human = example_labels.judge_strength(pair, content), example_labels.human_strength(pair, content)
        if judge is not None and human is not None:
            found.append(abs(judge - human) / (STEPS - 1))
    return sum(found) / len(found) if found else None


def at_odds(
    kind: str, subject: Subject, judged: Content | None, content: Content, answers: Sequence[Content] = ()
) -> float | None:
    """0 .. 1: the distance of a judge's answer to this task from people's answers, in the dataset or in `answers` (contents in the
    subject's frame); None if the judge or the people said nothing."""
    return kinds.get_kind(kind).at_odds(subject, judged, content, answers)


def ranked(rank: float, score: float | None) -> float:
    """The rank of a task that is served by its score, from its `rank` so far."""
    return _level(score) * LEVEL + rank % LEVEL


def _level(score: float | None) -> int:
    return LEVELS + 1 if score is None else round((1 - min(max(score, 0.0), 1.0)) * LEVELS)


def _scored_pairs(subject: Subject, content: Content) -> list[Subject]:
    return [subject] if "a" in subject else example_labels.pairs(content)


def _entropy(values: Sequence[float]) -> float:
    shares = [values.count(value) / len(values) for value in set(values)]
    return -sum(share * log(share) for share in shares)
