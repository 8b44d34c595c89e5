"""The parts of a walk that the page and the API show: counts for each kind, and the rows of one kind by pages."""

from dataclasses import dataclass, replace
from typing import Any

from django.db import connection
from django.db.models import Model, QuerySet

from webapp.accounts.models import Membership
from webapp.annotation.access import may_name
from webapp.evaluation import queries as evaluations
from webapp.evaluation.models import Evaluation
from webapp.judging.models import JudgeVersion

from .drawing import DrawnGraph, draw_graph
from .edges import EDGES
from .first_steps import Way
from .graph import surroundings
from .kinds import KINDS, LineageKind, fetched
from .traversal import Reached, walk


@dataclass(frozen=True)
class Walked:
    """A walk, and whether the caller may know who its people are (`named`)."""

    kind: LineageKind
    row: Model
    way: Way
    reach: Reached
    workspace_id: int
    named: bool

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows of each kind that was found, in the order in which one kind rests on the other."""
        return {name: count for name in KINDS if (count := self.reach.counts[name])}

    @property
    def again(self) -> dict[str, int]:
        """The numbers of rows that would have to be made again if the start was withdrawn."""
        return {name: count for name, count in self.counts.items() if KINDS[name].made}

    def rows(self, kind: str) -> QuerySet[Any]:
        """The rows of one kind; no people for a reader who may not know their names."""
        rows = KINDS[kind].rows(self.workspace_id)
        if kind == "person" and not self.named:
            return rows.none()
        return rows.filter(pk__in=self.reach.ids.get(kind, ()))

    def told(self, kind: str, row: Model) -> dict[str, Any]:
        known = KINDS[kind]
        return {
            "kind": kind,
            "id": row.pk,
            "name": known.label(row),
            "url": known.address(row),
            "direct": (kind, row.pk) in self.reach.direct,
        }


def walked(membership: Membership, kind: str, row_id: int, way: Way, *, named: bool = True) -> Walked:
    """`named`: False if the caller's key does not open what people do. Raises Http404."""
    row = fetched(membership, kind, row_id)
    reach = _within(membership.workspace_id, walk((kind, row_id), way))
    return Walked(KINDS[kind], row, way, reach, membership.workspace_id, named and may_name(membership))


def graph(
    membership: Membership, kind: str, row_id: int, levels: int, *, named: bool = True
) -> tuple[Model, DrawnGraph]:
    """The row and the graph around it. `named` as for `walked`. Raises Http404."""
    row = fetched(membership, kind, row_id)
    found = surroundings(membership.workspace_id, (kind, row_id), levels)
    return row, draw_graph(membership.workspace_id, found, named=named and may_name(membership))


def evaluations_of(workspace_id: int, judge_id: int, most: int) -> list[Evaluation]:
    """The newest evaluations that name a version of the judge, of a judge of the workspace."""
    versions = list(
        JudgeVersion.objects.filter(judge=judge_id, judge__workspace_id=workspace_id).values_list("pk", flat=True)
    )
    (edge,) = (each for each in EDGES if (each.above, each.below) == ("judge", "evaluation"))
    starts = "(SELECT 'judge'::text AS kind, unnest(%s::bigint[]) AS id) AS r"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT found.id FROM {starts}, LATERAL ({edge.sql('down')}) AS found ORDER BY id DESC LIMIT %s",  # noqa: S608  ours
            [versions, most],
        )
        ids = [pk for (pk,) in cursor.fetchall()]
    return list(evaluations.listed(workspace_id).filter(pk__in=ids).order_by("-pk"))


def _within(workspace_id: int, reach: Reached) -> Reached:
    """The rows of this workspace alone, because a person may annotate in several."""
    kept = {
        kind: set(KINDS[kind].rows(workspace_id).filter(pk__in=ids).values_list("pk", flat=True))
        for kind, ids in reach.ids.items()
    }
    return replace(reach, ids=kept)
