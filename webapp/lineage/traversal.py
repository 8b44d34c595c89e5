"""Walks from a row to everything it reached, or to everything it rests on: one recursive query over `edges`."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from webapp.annotation.models import PublishedCase, Task
from webapp.datasets.models import Example, VersionMember

from .edges import steps

Way = Literal["down", "up"]
Node = tuple[str, int]
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


@dataclass(frozen=True)
class FirstStep:
    """`near`: the rows one step away. `follow`: those from which the walk continues."""

    near: set[Node]
    follow: list[Node]


def walk(start: Node, way: Way, most: int = MOST) -> Reached:
    """The rows that `start` reached (`down`), or that it rests on (`up`)."""
    if start[0] == "example":
        return _of_example(start[1], way, most)
    found = _reached([start], way, most)
    return _gathered([node for node in found if node != start], _near(start, way, most), len(found) <= most)


def _of_example(example_id: int, way: Way, most: int) -> Reached:
    begun = from_example(example_id, way, most)
    found = _reached(begun.follow, way, most)
    return _gathered([*found, *begun.near], begun.near, len(found) <= most)


def from_example(example_id: int, way: Way, most: int = MOST) -> FirstStep:
    """The first step from an example, which is in no relation.

    Down: the versions that hold the example, as it is or with labels added, are known exactly, so that one which was derived without it is
    not among them. Up: the versions that hold this very row.
    """
    if way == "up":
        held = list(VersionMember.objects.filter(example=example_id).values_list("version_id", flat=True)[: most + 1])
        near = {("version", pk) for pk in held}
        return FirstStep(near, sorted(near))
    row = Example.objects.only("dataset_id", "key").get(pk=example_id)
    # the same key in one dataset is the same example, with other labels
    rows = VersionMember.objects.filter(example__dataset_id=row.dataset_id, example__key=row.key)
    held = list(rows.values_list("version_id", flat=True).distinct()[: most + 1])
    near = {("version", pk) for pk in held}
    tasks = Task.objects.filter(example__dataset_id=row.dataset_id, example__key=row.key)
    near |= {("project", pk) for pk in tasks.values_list("project_id", flat=True).distinct()}
    kept = PublishedCase.objects.filter(task__in=tasks, fate=PublishedCase.Fate.KEPT, answers__gt=0)
    near |= {("publication", pk) for pk in kept.values_list("publication_id", flat=True).distinct()}
    return FirstStep(near, [("held", pk) for pk in held])


def _reached(start: Sequence[Node], way: Way, most: int) -> list[Node]:
    kinds, ids = [kind for kind, _ in start], [pk for _, pk in start]
    with by_indexes() as cursor:
        cursor.execute(_WALK.format(steps=steps(way)), [kinds, ids, most + 1])
        return [(kind, pk) for kind, pk in cursor.fetchall()]


@contextmanager
def by_indexes() -> Iterator[CursorWrapper]:
    """Each step has an index for each of its edges. If nearly all runs begin with one model, the planner expects that of every model, and
    would read all runs for each model on the way. It also expects so much work that a server with JIT would compile the forty queries of
    a step for seconds, to run most of them not once."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL jit = off")
        yield cursor
        cursor.execute("SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL jit TO DEFAULT")


def _near(start: Node, way: Way, most: int) -> set[Node]:
    with by_indexes() as cursor:
        cursor.execute(_STEP.format(steps=steps(way, most)), [*start, most])
        return {(kind, pk) for kind, pk in cursor.fetchall()}


def _gathered(found: Sequence[Node], near: set[Node], whole: bool) -> Reached:
    ids: defaultdict[str, set[int]] = defaultdict(set)
    for kind, pk in found:
        ids["version" if kind == "held" else kind].add(pk)
    return Reached(dict(ids), near, whole)
