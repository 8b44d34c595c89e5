"""Pairs of answers with all judgements of which is better. Preference recipes train on them.

`webapp.annotation` publishes a ranking as pairs already; ratings on one scale become pairs here.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from .example import Example, Reason

ORDERED = 2.0
"""The strength of "better" if only the order is known: the middle of 1..3, as for the pairs of a ranking."""


@dataclass
class LabelledPair:
    """Two answers of an example, in its order, and the votes of its raters: each vote a strength from 1 to 3.

    `ties` counts the raters who found them equally good, `undecided` those who could not tell or found both bad.
    """

    first: str
    second: str
    for_first: tuple[float, ...] = ()
    for_second: tuple[float, ...] = ()
    ties: int = 0
    undecided: int = 0

    @property
    def votes(self) -> int:
        """The number of raters that preferred one answer or found a tie."""
        return len(self.for_first) + len(self.for_second) + self.ties

    @property
    def share(self) -> float:
        """The share of the votes for the first answer; a tie is half a vote for each. 0.5 if nobody voted."""
        return (len(self.for_first) + self.ties / 2) / self.votes if self.votes else 0.5

    @property
    def decided(self) -> bool:
        """Whether more raters are for one answer than for the other."""
        return len(self.for_first) != len(self.for_second)


def labelled_pairs(example: Example, scale: str = "") -> list[LabelledPair]:
    """Every pair that somebody has compared, in the order of the first comparison.

    With a `scale`, ratings on this scale count too: a rater's two ratings are a comparison of the two answers.
    """
    place = {response.id: at for at, response in enumerate(example.responses)}
    found: dict[tuple[str, str], LabelledPair] = {}
    for a, b, strength in [*_compared(example), *_rated(example, scale)]:
        turned = place[a] > place[b]
        first, second = (b, a) if turned else (a, b)
        pair = found.setdefault((first, second), LabelledPair(first, second))
        _count(pair, -strength if turned and strength is not None else strength)
    return list(found.values())


def human_reasons(example: Example, pair: LabelledPair) -> tuple[list[str], int]:
    """The reasons of the raters who voted as the majority did, each text once, in order; and how many reasons had no text.

    Reasons of the other raters are left out, because they speak against the label.
    """
    texts = [reason.text.strip() for reason in siding_reasons(example, pair)]
    return list(dict.fromkeys(text for text in texts if text)), texts.count("")


def siding_reasons(example: Example, pair: LabelledPair) -> Iterator[Reason]:
    """The reasons of the raters who voted as the majority did, as they gave them."""
    wanted = -1 if len(pair.for_first) > len(pair.for_second) else 1
    for each in example.preferences:
        if {each.a, each.b} != {pair.first, pair.second} or not each.strength:
            continue
        side = (1 if each.strength > 0 else -1) * (1 if each.a == pair.first else -1)
        if side == wanted:
            yield from each.reasons


def compared(chosen: float, rejected: float) -> dict[str, float]:
    """Compares two scores, whose difference is a log-odds, with the people's decision about a pair.

    `margin`: the difference. `confidence`: sigmoid(|margin|), from 0.5 (Bradley and Terry, 1952). `right`: 1 if the preferred answer has
    the higher score, 0 if the other has; left out of a draw.
    """
    margin = chosen - rejected
    found = {"margin": margin, "confidence": 1.0 / (1.0 + math.exp(-abs(margin)))}
    return found | ({"right": float(margin > 0)} if margin else {})


def _count(pair: LabelledPair, strength: float | None) -> None:
    """Counts one vote: below 0 for the first answer, above 0 for the second, 0 for a tie, None for undecided."""
    if strength is None:
        pair.undecided += 1
    elif strength == 0:
        pair.ties += 1
    elif strength < 0:
        pair.for_first += (-strength,)
    else:
        pair.for_second += (strength,)


def _compared(example: Example) -> Iterator[tuple[str, str, float | None]]:
    for each in example.preferences:
        strength = each.strength if each.verdict == "compared" else None
        yield each.a, each.b, None if strength is None else float(strength)


def _rated(example: Example, scale: str) -> Iterator[tuple[str, str, float | None]]:
    """Each two answers that one rater has rated on the scale."""
    if not scale:
        return
    known = {response.id for response in example.responses}
    by_rater: dict[str, dict[str, float]] = defaultdict(dict)
    for rater, response, score in [*_imported(example.meta, scale), *_annotated(example.meta, scale)]:
        if response in known and _is_number(score):
            by_rater[rater][response] = float(score)
    for scores in by_rater.values():
        for a, b in combinations(scores, 2):
            yield a, b, ORDERED * ((scores[b] > scores[a]) - (scores[b] < scores[a]))


def _imported(meta: Mapping[str, Any], scale: str) -> Iterator[tuple[str, Any, Any]]:
    """`meta.ratings`, as importers leave them."""
    for each in _dicts(meta.get("ratings")):
        if each.get("scale") == scale:
            yield str(each.get("rater", "")), each.get("response"), each.get("score")


def _annotated(meta: Mapping[str, Any], scale: str) -> Iterator[tuple[str, Any, Any]]:
    """`meta.annotation`, as a published annotation project leaves them."""
    projects = meta.get("annotation")
    for name, project in projects.items() if isinstance(projects, dict) else ():
        for task in _dicts(project.get("tasks") if isinstance(project, dict) else None):
            ratings, subject = task.get("ratings"), task.get("subject")
            if isinstance(ratings, dict) and isinstance(subject, dict):
                rater = f"{task.get('rater', task.get('source', ''))}@{name}"
                yield rater, subject.get("response"), ratings.get(scale)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
