"""Walks from a row to everything it reached, or to everything it rests on: one recursive query over `edges`."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from .edges import steps
from .first_steps import Node, Way, by_indexes, first_step

MOST = 20_000
"""Rows that one walk finds at most: what lies behind them is not looked at, and the answer says so."""

_WALK = """
WITH RECURSIVE reached (kind, id) AS (
    SELECT kind::text, id::bigint FROM unnest(%s::text[], %s::bigint[]) AS start (kind, id)
    UNION
    SELECT found.kind, found.id FROM reached r CROSS JOIN LATERAL ({steps}) AS found (kind, id)
)
SELECT kind, id FROM reached LIMIT %s
"""
_STEP = """
SELECT DISTINCT found.kind, found.id FROM (SELECT %s::text AS kind, %s::bigint AS id) r
CROSS JOIN LATERAL ({steps}) AS found (kind, id) LIMIT %s
"""


@dataclass(frozen=True)
class Reached:
    """`ids`: {kind: ids of its rows}, without the start; `direct`: those one step away. Not `whole`: there are more."""

    ids: dict[str, set[int]]
    direct: set[Node] = field(default_factory=set)
    whole: bool = True

    @property
    def counts(self) -> Counter[str]:
        return Counter({kind: len(ids) for kind, ids in self.ids.items()})


def walk(start: Node, way: Way, most: int = MOST) -> Reached:
    """The rows that `start` reached (`down`), or that it rests on (`up`)."""
    begun = first_step(start, way, most)
    found = _reached(begun.follow if begun else [start], way, most)
    near = begun.near if begun else _near(start, way, most)
    also = [*begun.near, *begun.further] if begun else []
    return _gathered([*(node for node in found if node != start), *also], near, len(found) <= most)


def _reached(start: Sequence[Node], way: Way, most: int) -> list[Node]:
    kinds, ids = [kind for kind, _ in start], [pk for _, pk in start]
    with by_indexes() as cursor:
        cursor.execute(_WALK.format(steps=steps(way)), [kinds, ids, most + 1])
        return [(kind, pk) for kind, pk in cursor.fetchall()]


def _near(start: Node, way: Way, most: int) -> set[Node]:
    with by_indexes() as cursor:
        cursor.execute(_STEP.format(steps=steps(way, most)), [*start, most])
        return {(kind, pk) for kind, pk in cursor.fetchall()}


def _gathered(found: Sequence[Node], near: set[Node], whole: bool) -> Reached:
    ids: defaultdict[str, set[int]] = defaultdict(set)
    for kind, pk in found:
        if kind != "read":
            ids["version" if kind == "held" else kind].add(pk)
    return Reached(dict(ids), near, whole)
