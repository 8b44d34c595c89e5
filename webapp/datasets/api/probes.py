"""Pass rates over the API: the probes of a dataset, the map of a version by one of them, the rates of its examples."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page
from webapp.core.requests.openapi import StrictIn

from .. import access, probe_services, queries, written_rates
from ..columns.filters import Filters
from ..exploration import probes
from ..models import DatasetVersion, Example
from .datasets import Id, Number, VersionOut

router = Router(tags=["datasets"])
VERSION = "/datasets/{int:dataset_id}/versions/{int:number}"


class ProbeOut(Schema):
    """`version` is the one with the examples that the probe asked about. `threshold`: the clipped score from which an answer passes."""

    id: int
    model: str
    evaluation: int
    version: int = Field(alias="version.number")
    samples: int = Field(description="Answers to each prompt")
    threshold: float
    made_at: datetime


class ProbeList(Schema):
    items: list[ProbeOut]
    next: str | None


class PartOut(Schema):
    """A group of examples; `filters` narrow the list of examples to them."""

    name: str
    count: int
    filters: dict[str, str] = Field(alias="query")


class DomainOut(Schema):
    domain: str
    parts: list[PartOut]


class MapOut(Schema):
    known: int = Field(description="Examples with a pass rate")
    parts: list[PartOut] = Field(description="Solved, learnable, out of reach, unknown")
    bars: list[PartOut] = Field(description="Groups from no answer that passes to all answers that pass")
    domains: list[DomainOut] = Field(description="The most frequent ones")


class RateOut(Schema):
    """`low` and `high` are the 95% interval (Wilson); null, with `rate`, if no answer has a score."""

    position: int
    id: int
    key: str
    passed: int
    tried: int
    rate: float | None
    low: float | None
    high: float | None


class RateList(Schema):
    items: list[RateOut]
    next: str | None


@router.get("/datasets/{int:dataset_id}/probes", response=ProbeList, summary="Measurements of pass rates, newest first")
def list_probes(request: HttpRequest, dataset_id: Id, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    dataset = access.dataset_read(require(request), dataset_id)
    found = page(probes.all_of(dataset.pk), cursor, limit)
    return {"items": found.items, "next": found.next}


@router.get(
    VERSION + "/probes/{int:probe_id}", response=MapOut, summary="Prompts that are solved, learnable, or out of reach"
)
def read_map(request: HttpRequest, dataset_id: Id, number: Number, probe_id: Id) -> dict[str, Any]:
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    found = probes.map_of(version, access.probe_of(membership, version, probe_id))
    domains = [{"domain": name, "parts": parts} for name, parts in found.domains]
    return {"known": found.known, "parts": found.parts, "bars": found.bars, "domains": domains}


@router.get(VERSION + "/probes/{int:probe_id}/rates", response=RateList, summary="The pass rate of each example")
def list_rates(
    request: HttpRequest,
    dataset_id: Id,
    number: Number,
    probe_id: Id,
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """The rates in the version's order. Filters of examples take `probe`, too: `reach=learnable&probe=…`."""
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    found = probes.of_probe(version, access.probe_of(membership, version, probe_id))
    page = queries.examples(version, Filters(), cursor, limit)
    return {"items": [_rate(found, each.position, each.example) for each in page.items], "next": page.next}


def _rate(found: probes.Passed, position: int, example: Example) -> dict[str, Any]:
    share = found.share(position)
    counts = {"passed": round((share.value or 0) * share.n), "tried": share.n}
    rate = {"rate": share.value, "low": share.low, "high": share.high}
    return {"position": position, "id": example.pk, "key": example.key, **counts, **rate}


class WrittenIn(StrictIn):
    probes: list[int] = Field(min_length=1, max_length=8, description="Their answers count together")


@router.post(
    VERSION + "/probes/write",
    response={201: VersionOut},
    summary="Create a version whose examples have these pass rates as `meta.pass_rate`",
)
def write_rates(request: HttpRequest, dataset_id: Id, number: Number, payload: WrittenIn) -> Status[DatasetVersion]:
    """Runs read the rates there: hints, stages by pass rate, orders from easy to hard."""
    membership = require(request)
    version = access.version_write(membership, dataset_id, number)
    found = [access.probe_of(membership, version, each) for each in dict.fromkeys(payload.probes)]
    return Status(201, written_rates.write(membership, version, found))


@router.delete("/probes/{int:probe_id}", response={204: None}, summary="Delete the pass rates of a probe")
def delete_probe(request: HttpRequest, probe_id: Id) -> Status[None]:
    membership = require(request)
    probe_services.delete(membership, access.probe_write(membership, probe_id))
    return Status(204, None)
