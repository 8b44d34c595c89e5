"""Lineage over the API: what a row reached, and what it rests on. Reading needs the role reviewer."""

from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Path, Query, Router, Schema
from pydantic import Field

from webapp.accounts import areas
from webapp.accounts.access import key_opens, require
from webapp.accounts.models import Membership
from webapp.core.database.paging import Limit, page
from webapp.core.requests.strict_query import OneOf

from . import queries
from .drawing import GraphBox
from .first_steps import Way
from .graph import DEEPEST, STEPS
from .kinds import KINDS

router = Router(tags=["lineage"])
Id = Path[Annotated[int, Field(ge=1, lt=2**63)]]
What = Path[Annotated[str, OneOf(tuple(KINDS))]]
Steps = Annotated[int, Query(ge=1, le=DEEPEST, description="In each direction")]
PEOPLE = areas.Need(areas.Area.ANNOTATION, areas.Right.READ)


class NodeOut(Schema):
    kind: str
    id: int
    name: str
    url: str = Field(description="Its page; empty for people")
    direct: bool = Field(description="One step away from the start")


class LineageOut(Schema):
    start: NodeOut
    way: Way
    counts: dict[str, int] = Field(description="Rows that were found, by kind")
    again: dict[str, int] = Field(
        description="Number of these rows that must be made again if the start is withdrawn (way down)"
    )
    whole: bool = Field(description="False if there are more rows than one walk looks at")
    people_named: bool = Field(description="False: people are counted, and not listed")


class NodeList(Schema):
    items: list[NodeOut]
    next: str | None


class GraphBoxOut(Schema):
    kind: str
    id: int | None = Field(description="Null for rows that stand together, and for people without names")
    count: int
    name: str
    note: str
    url: str = Field(description="The graph around it, or the list of these rows; empty for people without names")
    column: int


class GraphLineOut(Schema):
    above: int = Field(description="Place of a box in `boxes`, from 0")
    below: int
    count: int = Field(description="Relations between rows of the two boxes")


class LineageGraphOut(Schema):
    boxes: list[GraphBoxOut]
    lines: list[GraphLineOut]
    whole: bool = Field(description="False if some rows are not drawn, because too many follow there")


@router.get(
    "/lineage/{what}/{what_id}",
    response=LineageOut,
    summary="Rows that were made from a row, or rows on which it is based",
)
def lineage(request: HttpRequest, what: What, what_id: Id, way: Way = "down") -> dict[str, Any]:
    """`down` leads from a person, an answer, an example or a version to everything that was made of it; `up` leads back to the people."""
    found = _walked(request, what, what_id, way)
    return {
        "start": found.told(what, found.row),
        "way": way,
        "counts": found.counts,
        "again": found.again if way == "down" else {},
        "whole": found.reach.whole,
        "people_named": found.named,
    }


@router.get("/lineage/{what}/{what_id}/rows", response=NodeList, summary="The rows of one kind, newest first")
def rows(
    request: HttpRequest,
    what: What,
    what_id: Id,
    of: Annotated[str, OneOf(tuple(KINDS))],
    way: Way = "down",
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    found = _walked(request, what, what_id, way)
    shown = page(found.rows(of), cursor, limit)
    return {"items": [found.told(of, row) for row in shown.items], "next": shown.next}


@router.get("/lineage/{what}/{what_id}/graph", response=LineageGraphOut, summary="The graph around a row")
def graph(request: HttpRequest, what: What, what_id: Id, steps: Steps = STEPS) -> dict[str, Any]:
    """Many rows of a kind stand together. `column` is negative for rows on which the start rests, and positive for rows that were made from it."""
    membership, named = _reader(request, what)
    _, drawn = queries.graph(membership, what, what_id, steps, named=named)
    place = {box: number for number, box in enumerate(drawn.boxes)}
    told = [{"above": place[line.above], "below": place[line.below], "count": line.count} for line in drawn.lines]
    return {"boxes": [_box(box) for box in drawn.boxes], "lines": told, "whole": drawn.whole}


def _box(box: GraphBox) -> dict[str, Any]:
    facts = {name: getattr(box, name) for name in ("column", "count", "name", "note", "url")}
    return facts | {"kind": box.kind.name, "id": None if box.row is None else box.row.pk}


def _walked(request: HttpRequest, what: str, what_id: int, way: Way) -> queries.Walked:
    membership, named = _reader(request, what)
    return queries.walked(membership, what, what_id, way, named=named)


def _reader(request: HttpRequest, what: str) -> tuple[Membership, bool]:
    """The member who asks, and whether the key opens what people do: a key that opens runs alone names nobody."""
    membership, named = require(request), key_opens(request, PEOPLE)
    if what == "person" and not named:
        raise Http404("no such row")
    return membership, named
