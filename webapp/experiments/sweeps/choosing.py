"""Chooses the next configuration: pure functions of the sweep's request and of what its trials had reported by then.

A method is a function of `TrialAsked`. Its result must depend on that alone, so that every choice can be made again from the rows.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from . import space, tpe
from .space import SweepAxis, Values

AGAIN = 50  # draws that only found what is there, after which the rest is counted out
MOST_LISTED = 100_000


@dataclass(frozen=True)
class KnownTrial:
    """A trial as it was known when the next one was chosen. `state`: running, finished, pruned, lost or refused."""

    number: int
    values: Values
    state: str
    value: float | None = None
    rungs: Mapping[int, float] = field(default_factory=dict)  # step -> value


@dataclass(frozen=True)
class TrialAsked:
    """The next trial is number `number`, counted from 1; `known` are all before it, in their order."""

    axes: Sequence[SweepAxis]
    seed: int
    number: int
    higher: bool
    known: Sequence[KnownTrial]


def grid(asked: TrialAsked) -> Values | None:
    return next(islice(space.grid(asked.axes), asked.number - 1, None), None)


def at_random(asked: TrialAsked) -> Values | None:
    """A random configuration that was not tried yet; None: there is none."""
    taken = {space.digest(each.values) for each in asked.known}
    for attempt in range(AGAIN):
        found = space.random_configuration(asked.axes, asked.seed, asked.number, attempt)
        if space.digest(found) not in taken:
            return found
    return _left(asked, taken)


def by_what_has_worked(asked: TrialAsked) -> Values | None:
    """A configuration by TPE; if it was tried already, a random one instead."""
    found = tpe.suggested(asked)
    if found is None or space.digest(found) in {space.digest(each.values) for each in asked.known}:
        return at_random(asked)
    return found


def _left(asked: TrialAsked, taken: set[str]) -> Values | None:
    """Values that no trial has had yet, if the space is small enough to list; None for a larger space, which cannot be nearly used up."""
    total = space.size(asked.axes)
    if total is None or total > MOST_LISTED:
        return None
    left = [each for each in space.all_configurations(asked.axes) if space.digest(each) not in taken]
    return random.Random(f"{asked.seed}:{asked.number}").choice(left) if left else None  # noqa: S311


METHODS: Mapping[str, Callable[[TrialAsked], Values | None]] = {
    "grid": grid,
    "random": at_random,
    "tpe": by_what_has_worked,
}


def offered() -> list[str]:
    """The methods that this installation has."""
    return [name for name in METHODS if name != "tpe" or tpe.is_installed()]


def chosen(method: str, asked: TrialAsked) -> Values | None:
    """None: there is nothing left to try."""
    return METHODS[method](asked)


def goes_on(value: float, others: Sequence[float], factor: int, higher: bool) -> bool:
    """Asynchronous successive halving (Li et al., 2020): whether a trial that reaches a rung with `value` is among the best 1/`factor` of
    all that have reached it, itself included. Among fewer than `factor` only the best continues."""
    ranked = sorted([*others, value], reverse=higher)
    last = ranked[max(len(ranked) // factor, 1) - 1]
    return value >= last if higher else value <= last


def rungs(first: int, factor: int, steps: int) -> list[int]:
    """The steps at which trials are compared, in order: none for `first` 0, and none at the end, if nothing is left to stop."""
    found, step = list[int](), first
    while 0 < step < steps:
        found.append(step)
        step *= factor
    return found


def most_steps(axes: Sequence[SweepAxis], steps: int) -> int:
    """The steps of the longest trial, if the config has `steps`, which the axes may replace."""
    return max(_swept_steps(axes), default=steps)


def least_steps(axes: Sequence[SweepAxis], steps: int) -> int:
    """The steps of the shortest trial, like `most_steps`."""
    return min(_swept_steps(axes), default=steps)


def _swept_steps(axes: Sequence[SweepAxis]) -> list[int]:
    return [int(value or 0) for axis in axes if axis.path == "steps" for value in axis.tried()]


def as_json(asked: TrialAsked) -> dict[str, Any]:
    """The choice as JSON, for people who inspect it."""
    return {"number": asked.number, "known": [vars(each) for each in asked.known]}
