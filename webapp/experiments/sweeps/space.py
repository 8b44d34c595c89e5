"""The search space of a sweep: the keys of a config that change, and their values. No database, no Django.

All draws come from a seed and a number, so they are the same on any machine and after any interruption.
"""

import hashlib
import itertools
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Value = float | int | str | bool | None
Values = dict[str, Value]
Scale = Literal["linear", "log"]
DIGITS = 6  # significant ones of a drawn number: what people read is what runs
MOST_COUNTED = 1_000_000_000


@dataclass(frozen=True)
class SweepAxis:
    """A key of the config and its values: those of `values`, or all numbers from `low` to `high`.

    `points`: how many values of a range are in a grid, with its ends. `whole`: the key takes whole numbers only.
    """

    path: str
    values: tuple[Value, ...] = ()
    low: float | None = None
    high: float | None = None
    scale: Scale = "linear"
    points: int | None = None
    whole: bool = False

    @property
    def is_range(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def size(self) -> int | None:
        """The number of values; None: a range without a fixed number."""
        if not self.is_range:
            return len(self.values)
        assert self.low is not None and self.high is not None  # noqa: S101
        return math.floor(self.high) - math.ceil(self.low) + 1 if self.whole else None

    def at(self, share: float) -> Value:
        """The value of a range at a share of its way, by factors if the scale is `log`."""
        assert self.low is not None and self.high is not None  # noqa: S101
        if self.scale == "log":
            found = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            found = self.low + share * (self.high - self.low)
        return self.rounded(found)

    def rounded(self, number: float) -> Value:
        """The value as it will be in the config, never beyond the ends."""
        assert self.low is not None and self.high is not None  # noqa: S101
        near = min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)
        return min(max(round(near), math.ceil(self.low)), math.floor(self.high)) if self.whole else near

    def in_grid(self) -> list[Value]:
        if not self.is_range:
            return list(self.values)
        points = self.points or 2
        return list(dict.fromkeys(self.at(i / (points - 1)) for i in range(points)))

    def drawn(self, draw: random.Random) -> Value:
        return self.at(draw.random()) if self.is_range else self.values[draw.randrange(len(self.values))]

    def tried(self) -> list[Value]:
        """The values that show whether the config takes the axis: each of a list, the ends of a range."""
        return [self.at(0.0), self.at(1.0)] if self.is_range else list(self.values)

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "values": list(self.values)}

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "SweepAxis":
        return cls(**{**raw, "values": tuple(raw["values"])})


def with_values(config: Mapping[str, Any], values: Mapping[str, Value]) -> dict[str, Any]:
    """The config with the values at their places; sections that are off stay off."""
    out = dict(config)
    for path, value in values.items():
        head, _, rest = path.partition(".")
        out[head] = _laid(out.get(head), rest, value)
    return out


def _laid(node: Any, path: str, value: Value) -> Any:
    if not path:
        return value
    head, _, rest = path.partition(".")
    if isinstance(node, list):
        return [_laid(each, rest, value) if str(i) == head else each for i, each in enumerate(node)]
    if isinstance(node, dict):
        return {**node, head: _laid(node.get(head), rest, value)}
    return node


def digest(values: Mapping[str, Value]) -> str:
    """Equal for equal configurations of one sweep."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def size(axes: Sequence[SweepAxis], grid: bool = False) -> int | None:
    """The number of configurations, in the grid or at all; None: more than can be counted."""
    found = 1
    for axis in axes:
        here = len(axis.in_grid()) if grid else axis.size
        if here is None:
            return None
        found *= here
    return found if found < MOST_COUNTED else None


def grid(axes: Sequence[SweepAxis]) -> Iterator[Values]:
    """Every combination; the last axis changes first."""
    for combination in itertools.product(*(axis.in_grid() for axis in axes)):
        yield dict(zip((axis.path for axis in axes), combination, strict=True))


def all_configurations(axes: Sequence[SweepAxis]) -> Iterator[Values]:
    """Every configuration of a space that has a size."""
    choices = [
        axis.values if not axis.is_range else range(math.ceil(axis.low or 0), math.floor(axis.high or 0) + 1)
        for axis in axes
    ]
    for combination in itertools.product(*choices):
        yield dict(zip((axis.path for axis in axes), combination, strict=True))


def random_configuration(axes: Sequence[SweepAxis], seed: int, *place: int) -> Values:
    """A random configuration, which depends on the seed and the number alone."""
    draw = random.Random(":".join(map(str, (seed, *place))))  # noqa: S311 nobody must not guess it
    return {axis.path: axis.drawn(draw) for axis in axes}
