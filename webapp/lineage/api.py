"""Lineage over the API: what a row reached, and what it rests on. Reading needs the role reviewer."""

from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Path, Router, Schema
from pydantic import Field

from webapp.accounts import areas
from webapp.accounts.access import require
from webapp.core.paging import Limit, page
from webapp.core.strict_query import OneOf

from . import queries
from .kinds import KINDS
from .walking import Way

router = Router(tags=["lineage"])
Id = Path[Annotated[int, Field(ge=1, lt=2**63)]]
What = Path[Annotated[str, OneOf(tuple(KINDS))]]
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
    again: dict[str, int] = Field(description="Of them, what would have to be made again without the start (way down)")
    whole: bool = Field(description="False if there are more rows than one walk looks at")
    people_named: bool = Field(description="False: people are counted, and not listed")


class NodeList(Schema):
    items: list[NodeOut]
    next: str | None


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


def _walked(request: HttpRequest, what: str, what_id: int, way: Way) -> queries.Walked:
    """The walk, without people for a key that opens runs alone."""
    membership, named = require(request), True
    if token := getattr(request, "api_token", None):
        try:
            areas.check(token.areas, PEOPLE)
        except areas.LacksArea:
            named = False
    if what == "person" and not named:
        raise Http404("no such row")
    return queries.walked(membership, what, what_id, way, named=named)
