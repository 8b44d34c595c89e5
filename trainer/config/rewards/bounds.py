"""Between which values the reward of any response lies, as far as the kinds of its parts say.

Interval arithmetic: a part that stands twice in an expression counts as if it were two, so a bound may be wider than what is reached. It is
never narrower.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import NamedTuple

from .expression import Chain, ComparisonNode, FunctionCall, Negative, Node, Number, PartName

ROUNDING = 1e-9
"""A number that is above a bound by at most this counts as the bound, because rounding may have moved it."""


class RewardBounds(NamedTuple):
    """`low` may be -inf and `high` inf: there is no bound, or none is known."""

    low: float = -math.inf
    high: float = math.inf

    def times(self, factor: float) -> "RewardBounds":
        return _product(self, RewardBounds(factor, factor))


def summed(each: Iterable[RewardBounds]) -> RewardBounds:
    found = list(each)
    return RewardBounds(math.fsum(one.low for one in found), math.fsum(one.high for one in found))


def bounds_of(node: Node, parts: Mapping[str, RewardBounds]) -> RewardBounds:
    """The bounds of an expression over parts with these bounds."""
    if isinstance(node, Number):
        return RewardBounds(node.number, node.number)
    if isinstance(node, PartName):
        return parts.get(node.name, RewardBounds())
    inner = [bounds_of(each, parts) for each in node.inner()]
    if isinstance(node, Negative):
        return _negative(inner[0])
    if isinstance(node, ComparisonNode):
        return _compared(node.op, *inner)
    if isinstance(node, Chain):
        operators = [op for op, _ in node.rest]
        joined = zip(operators, inner[1:], strict=True)
        return reduce(lambda so_far, each: _JOIN[each[0]](so_far, each[1]), joined, inner[0])
    return _called(node, inner)


def _called(node: FunctionCall, inner: list[RewardBounds]) -> RewardBounds:
    if node.function == "gate":
        condition, behind = inner
        if condition == (0.0, 0.0):
            return RewardBounds(0.0, 0.0)
        opens = condition.low > 0 or condition.high < 0
        return behind if opens else RewardBounds(min(behind.low, 0.0), max(behind.high, 0.0))
    choose = max if node.function == "max" else min
    if node.function != "clip":
        return RewardBounds(choose(each.low for each in inner), choose(each.high for each in inner))
    value, low, high = inner
    return RewardBounds(min(max(value.low, low.low), high.low), min(max(value.high, low.high), high.high))


def _negative(one: RewardBounds) -> RewardBounds:
    return RewardBounds(-one.high, -one.low)


def _plus(one: RewardBounds, other: RewardBounds) -> RewardBounds:
    return RewardBounds(one.low + other.low, one.high + other.high)


def _product(one: RewardBounds, other: RewardBounds) -> RewardBounds:
    corners = [
        0.0 if 0 in (a, b) else a * b for a in one for b in other
    ]  # of 0 and an open end: what is near 0 stays near it
    return RewardBounds(min(corners), max(corners))


def _quotient(one: RewardBounds, other: RewardBounds) -> RewardBounds:
    """A response that would be divided by 0 has no reward, so an end at 0 is open."""
    if other.low < 0 < other.high or other == (0.0, 0.0):
        return RewardBounds()
    if other.low >= 0:
        return _product(one, RewardBounds(1 / other.high, 1 / other.low if other.low else math.inf))
    return _product(one, RewardBounds(1 / other.high if other.high else -math.inf, 1 / other.low))


def _compared(op: str, one: RewardBounds, other: RewardBounds) -> RewardBounds:
    """0 or 1 if the bounds decide the comparison, else both."""
    if op in (">", ">="):
        op, one, other = op.replace(">", "<"), other, one
    if op in ("<", "<="):
        holds = one.high < other.low or (op == "<=" and one.high == other.low)
        fails = one.low > other.high or (op == "<" and one.low == other.high)
        return RewardBounds(float(holds), float(not fails))
    apart = one.high < other.low or one.low > other.high
    return RewardBounds(float(apart and op == "!="), float(not (apart and op == "==")))


_JOIN: Mapping[str, Callable[[RewardBounds, RewardBounds], RewardBounds]] = {
    "+": _plus,
    "-": lambda one, other: _plus(one, _negative(other)),
    "*": _product,
    "/": _quotient,
}
