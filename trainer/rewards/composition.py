"""Named components add up to a reward, each kept for the charts; a failing component excludes the sample with a reason.

reward = sum of weight x component (METHODS 5, hybrid reward system).
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from trainer.config.policy import RewardComponent
from trainer.contracts import Rubric

from .rubric import RubricScore, score_rubric

COMPONENT_SECONDS = 5.0
T = TypeVar("T")


@dataclass(frozen=True)
class Sample:
    """What a component may look at. `tokens`: length of the response; `max_new_tokens`: where responses are cut."""

    rubric: Rubric
    response: str
    tokens: int
    max_new_tokens: int


@dataclass(frozen=True)
class Composed:
    """`total` is None exactly when `excluded` gives a reason. `components` are unweighted values by name."""

    total: float | None
    components: Mapping[str, float] = field(default_factory=dict)
    rubric: RubricScore | None = None
    excluded: str = ""


class Unscored(Exception):
    """Raised by a component that has no value for this sample; the message is the reason."""


Kind = Callable[[RewardComponent, Sample, list[RubricScore]], float]


def overlong_penalty(tokens: int, soft: int, longest: int) -> float:
    """0 up to `soft` tokens, then linear down to -1 at `longest` (DAPO's soft overlong punishment, Yu et al., 2025).

    Raises ValueError where `soft` is not below `longest`: there is no slope between them.
    """
    if soft >= longest:
        raise ValueError(f"the soft limit of {soft} tokens is not below the longest response of {longest}")
    return max(-1.0, min(0.0, (soft - tokens) / (longest - soft)))


def compose(
    parts: Sequence[RewardComponent],
    sample: Sample,
    kinds: Mapping[str, Kind] | None = None,
    seconds: float | None = None,
) -> Composed:
    """Total and parts of one sample. A component that raises, or needs more than `seconds`, excludes the sample."""
    limit = COMPONENT_SECONDS if seconds is None else seconds
    values: dict[str, float] = {}
    scores: list[RubricScore] = []
    for part in parts:
        value, reason = guarded(partial((kinds or KINDS)[part.kind], part, sample, scores), limit)
        if value is None:
            return Composed(None, values, scores[0] if scores else None, f"{part.name}: {reason}")
        values[part.name] = value
    total = sum(part.weight * values[part.name] for part in parts)
    return Composed(total, values, scores[0] if scores else None)


def exclusions(rewards: Iterable[Composed]) -> Counter[str]:
    """How many samples were excluded, by reason."""
    return Counter(reward.excluded for reward in rewards if reward.excluded)


def _rubric(part: RewardComponent, sample: Sample, scores: list[RubricScore]) -> float:
    """Scores once per sample: further rubric components read the first one's score."""
    if not scores:
        scores.append(score_rubric(sample.rubric, sample.response))
    if scores[0].score is None:
        missing = ", ".join(verdict.criterion_id for verdict in scores[0].verdicts if verdict.met is None)
        raise Unscored(f"no verdict for {missing}")
    return scores[0].score


def _overlong(part: RewardComponent, sample: Sample, scores: list[RubricScore]) -> float:
    return overlong_penalty(sample.tokens, part.soft_tokens, sample.max_new_tokens)


KINDS: dict[str, Kind] = {"rubric": _rubric, "overlong": _overlong}


def guarded(call: Callable[[], T], seconds: float) -> tuple[T | None, str]:
    """Its value, or None with the reason. A thread cannot be killed: one that hangs is left behind as a daemon."""
    outcome: list[tuple[T | None, str]] = []

    def run() -> None:
        try:
            outcome.append((call(), ""))
        except Unscored as unscored:
            outcome.append((None, str(unscored)))
        except Exception as error:
            outcome.append((None, f"{type(error).__name__}: {error}"))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return outcome[0] if outcome else (None, f"took longer than {seconds:g} s")
