"""Exploration of a version over the API: examples, counts, histograms, saved views."""

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.accounts.models import Role
from webapp.core.database.paging import Limit
from webapp.core.requests.openapi import StrictIn

from .. import access, queries
from ..columns.filters import CHOICES, Filters, parse
from ..exploration import narrowing, services
from ..models import SavedView, VersionMember
from .datasets import Id, Number

router = Router(tags=["datasets"])
RANGE = "A range such as 2..5, 2.. or ..5"


def _one_of(name: str) -> str:
    return "One of " + ", ".join(CHOICES[name])


class ExampleFilters(Schema):
    """The filters of the examples; an absent one filters nothing. Ranges are `from..to`: for whole numbers both ends count, for others the
    upper one does not."""

    q: str = Field("", max_length=500, description="Words that must occur; each may be the beginning of a longer word")
    split: str = Field("", description=_one_of("split"))
    domain: str = Field("", max_length=200)
    source: str = Field("", max_length=200)
    verifier: str = Field("", max_length=80)
    rubric: bool | None = None
    preferences: bool | None = None
    label: str = Field("", description=_one_of("label") + ": which response of the judged pair is better")
    kind: str = Field("", description=_one_of("kind") + ": kinds of criteria that the rubric has")
    slice: str = Field(
        "", description=_one_of("slice") + ": the surface in which one side of the judged pair is richer"
    )
    hard: str = Field("", description=_one_of("hard") + ": pairs that are hard by RubricBench's curation rules")
    prompt_length: str = Field("", description=RANGE + ", in characters")
    length: str = Field("", description=RANGE + ": characters of the responses, mean")
    ratio: str = Field("", description=RANGE + ": length of the rejected answer over that of the chosen one")
    criteria: str = Field("", description=RANGE)
    strength: str = Field("", description=RANGE + ", from -3 (the earlier response is much better) to 3")
    agreement: str = Field("", description=RANGE + ": share of rater pairs on the same side, 0 to 1")
    pass_rate: str = Field("", description=RANGE + ", 0 to 1")
    reach: str = Field("", description=_one_of("reach") + ": how many of the answers pass")
    probe: int | None = Field(
        None,
        ge=1,
        lt=2**63,
        description="The probe whose pass rates `pass_rate` and `reach` use; without it, those that the file gives",
    )
    constraints: str = Field("", description=RANGE + ": explicit constraints found in the prompt")

    def as_filters(self) -> Filters:
        return parse(self.model_dump(exclude_none=True))


class ExampleRow(Schema):
    id: int
    position: int
    key: str
    excerpt: str
    split: str | None
    domain: str
    source: str
    criteria: int
    responses: int
    preferences: int
    length: int | None
    length_ratio: float | None
    strength: float | None
    undecided: list[str] = Field(
        description=f"The verdicts of people who preferred no response ({', '.join(queries.NOT_COMPARED)}); empty if somebody preferred one"
    )
    agreement: float | None
    verifiers: list[str]


class ExampleList(Schema):
    items: list[ExampleRow]
    next: str | None


class CountOut(Schema):
    count: int


class BarOut(Schema):
    range: str
    count: int
    all: int


class HistogramOut(Schema):
    name: str
    label: str
    bars: list[BarOut]
    missing: int


class HistogramsOut(Schema):
    items: list[HistogramOut]


class ViewIn(StrictIn):
    name: str = Field(min_length=1, max_length=80)
    filters: dict[str, Any] = Field(
        default_factory=dict, description="The filters as in the address of the list of examples"
    )


class ViewOut(Schema):
    id: int
    name: str
    filters: dict[str, Any] = Field(alias="query")


class ViewList(Schema):
    items: list[ViewOut]
    next: str | None


VERSION = "/datasets/{int:dataset_id}/versions/{int:number}"


@router.get(VERSION + "/examples", response=ExampleList, summary="The examples of a version, narrowed and in order")
def list_examples(
    request: HttpRequest,
    dataset_id: Id,
    number: Number,
    filters: Query[ExampleFilters],
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    version = access.version_read(require(request), dataset_id, number)
    found = queries.examples(version, filters.as_filters(), cursor, limit)
    said = queries.undecided(member.example for member in found.items)
    return {"items": [_row(member, said.get(member.example_id, [])) for member in found.items], "next": found.next}


def _row(member: VersionMember, said: list[str]) -> dict[str, Any]:
    row = member.example
    return {
        "id": row.pk,
        "position": member.position,
        "key": row.key,
        "excerpt": row.excerpt,
        "split": row.split or None,
        "domain": row.domain,
        "source": row.source,
        "criteria": row.criteria_count,
        "responses": row.response_count,
        "preferences": row.preference_count,
        "length": row.response_length,
        "length_ratio": row.length_ratio,
        "strength": row.strength,
        "undecided": said,
        "agreement": row.agreement,
        "verifiers": row.verifiers,
    }


@router.get(VERSION + "/count", response=CountOut, summary="The number of examples that pass the filters")
def count(request: HttpRequest, dataset_id: Id, number: Number, filters: Query[ExampleFilters]) -> dict[str, Any]:
    version = access.version_read(require(request), dataset_id, number)
    return {"count": narrowing.count(version, filters.as_filters())}


@router.get(
    VERSION + "/histograms", response=HistogramsOut, summary="Histograms of lengths, ratios, criteria and so on"
)
def histograms(request: HttpRequest, dataset_id: Id, number: Number, filters: Query[ExampleFilters]) -> dict[str, Any]:
    """Each column is narrowed by all filters except its own. A bar's `range` is the filter that selects it."""
    version = access.version_read(require(request), dataset_id, number)
    return {"items": narrowing.histograms(version, filters.as_filters())}


@router.get("/datasets/{int:dataset_id}/views", response=ViewList, summary="Filters saved under a name")
def list_views(request: HttpRequest, dataset_id: Id) -> dict[str, Any]:
    return {"items": list(queries.views(access.dataset_read(require(request), dataset_id))), "next": None}


@router.post("/datasets/{int:dataset_id}/views", response={201: ViewOut}, summary="Save filters under a name")
def save_view(request: HttpRequest, dataset_id: Id, payload: ViewIn) -> Status[SavedView]:
    """A view of the same name is replaced."""
    membership = require(request, Role.REVIEWER)
    dataset = access.dataset_read(membership, dataset_id)
    return Status(201, services.save_view(membership, dataset, payload.name, parse(payload.filters)))


@router.delete("/views/{int:view_id}", response={204: None}, summary="Delete a saved view")
def delete_view(request: HttpRequest, view_id: Id) -> Status[None]:
    membership = require(request, Role.REVIEWER)
    services.delete_view(membership, access.view_write(membership, view_id))
    return Status(204, None)
