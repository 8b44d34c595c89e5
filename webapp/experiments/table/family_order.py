"""The first folded rows of an order, found among the runs that come first in it, so that a page needs no grouping of all runs.

A row stands where one of its runs stands, its newest. A few runs are looked at, then more, and then this gives up: a query may find none of
them.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count, Max, QuerySet

from . import family_means
from .keyset import KeysetStretch, Place

NEAR = (4, 20)
"""Runs for each wanted row that are looked at first, and after that."""
TOGETHER = f"""
SELECT DISTINCT other.id FROM experiments_run AS near JOIN experiments_run AS other
    ON other.experiment_id = near.experiment_id AND {family_means.KIN_OF.format("other")} = {family_means.KIN_OF.format("near")}
WHERE near.id = ANY(%s)
"""  # noqa: S608  ours
Members = Callable[[Collection[int]], "QuerySet[Any]"]
"""From ids of runs to the runs among them that rows have."""


@dataclass(frozen=True)
class Heads:
    """Runs in an order. A row stands at the newest of its `members`. `given` counts what no run of a row may have."""

    runs: KeysetStretch
    members: Members
    given: Count | None = None

    def first(self, after: Place | None, wanted: int) -> list[Place] | None:
        """The places of the first rows behind a place; None if these would have to be looked for among too many runs."""
        for share in NEAR:
            near = list(self.runs.after(after)[: share * wanted])
            heads = self._newest([run_id for _, run_id in near])
            found = [place for place in near if place[1] in heads]
            if len(found) >= wanted or len(near) < share * wanted:
                return found[:wanted]
        return None

    def _newest(self, ids: Sequence[int]) -> set[int]:
        """The newest member of each row that has one of the runs."""
        members = self.members(together(ids)).order_by()
        rows = members.values("experiment_id", "kin").annotate(newest=Max("pk"))
        if self.given is not None:
            rows = rows.annotate(given=self.given).filter(given=0)
        return set(rows.values_list("newest", flat=True))


def together(ids: Sequence[int]) -> list[int]:
    """All runs of the rows of these runs."""
    with connection.cursor() as cursor:
        cursor.execute(TOGETHER, [list(ids)])
        return [run_id for (run_id,) in cursor.fetchall()]
