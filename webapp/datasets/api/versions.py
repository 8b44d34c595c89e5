"""Versions over the API: their differences, their tags, and how the next one is derived."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Path, Query, Router, Schema, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.accounts.models import Role
from webapp.core.database.paging import Limit
from webapp.core.requests.openapi import StrictIn
from webapp.core.text.json_diff import MISSING, Change

from .. import access, queries
from ..columns.filters import parse
from ..curation import services as curating
from ..leakage import leaks
from ..leakage.near_leaks import VersionPair, near_leaks_of
from ..models import CurationJob
from ..versions import differences
from ..versions import services as datasets
from .datasets import Id, Number

router = Router(tags=["datasets"])
VERSION = "/datasets/{int:dataset_id}/versions/{int:number}"
Tag = Annotated[str, Path(min_length=1, max_length=40)]


class ChangeOut(Schema):
    """A field that only one side has is null on the other, and `only` names the side."""

    path: str
    before: Any
    after: Any
    only: Literal["before", "after"] | None


class EntryOut(Schema):
    """`before` and `after` are ids of examples; None if the key is only in one of the versions."""

    key: str
    excerpt: str
    before: int | None
    after: int | None
    changes: list[ChangeOut]


class DiffOut(Schema):
    """`counts` are of the whole versions, `items` of the requested kind."""

    counts: dict[str, int]
    items: list[EntryOut]
    next: str | None


class DeriveIn(StrictIn):
    filters: dict[str, Any] = Field(
        default_factory=dict, description="The filters as in the address of the list of examples"
    )
    keep: bool = Field(True, description="Keep the examples that pass the filters; false: remove them")
    job: int | None = Field(None, description="Remove what this curation job found; used instead of filters")
    note: str = Field("", max_length=500)


class PreviewOut(Schema):
    kept: int
    removed: int
    leaked: int = Field(description="Prompts and groups that would still be on both sides of the split")
    exact: bool
    examples: list[dict[str, Any]]


class CurateIn(StrictIn):
    kind: Literal[
        "duplicates", "leaks", "criteria", "structure", "shortest", "balance", "hardest", "cover", "meaning", "faulty"
    ]
    params: dict[str, Any] = Field(default_factory=dict)


class CurationOut(Schema):
    id: int
    kind: str
    state: str
    params: dict[str, Any]
    done: int
    total: int
    result: dict[str, Any]
    error: str
    version: dict[str, Any] | None
    created_at: datetime
    finished_at: datetime | None

    @staticmethod
    def resolve_version(row: CurationJob) -> dict[str, Any] | None:
        made = row.made
        if made is None:
            return None
        return {"id": made.pk, "dataset_id": made.dataset_id, "number": made.number, "digest": made.digest}


class FindingOut(Schema):
    id: int
    position: int
    group: int
    removes: bool
    detail: dict[str, Any]


class FindingList(Schema):
    items: list[FindingOut]
    next: str | None


@router.get(
    VERSION + "/diff", response=DiffOut, summary="Examples that were added, removed and changed since another version"
)
def diff(
    request: HttpRequest,
    dataset_id: Id,
    number: Number,
    base: Annotated[int, Query(ge=1, le=2**31 - 1)],
    kind: Literal["added", "removed", "changed"] = "changed",
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    membership = require(request)
    before = access.version_read(membership, dataset_id, base)
    after = access.version_read(membership, dataset_id, number)
    page = differences.page(before, after, kind, cursor, limit)
    items = [{**vars(each), "changes": [_change(change) for change in each.changes]} for each in page.items]
    return {"counts": differences.counts(before, after), "items": items, "next": page.next}


def _change(change: Change) -> dict[str, Any]:
    gone, come = change.before is MISSING, change.after is MISSING
    return {
        "path": change.path,
        "before": None if gone else change.before,
        "after": None if come else change.after,
        "only": "after" if gone else "before" if come else None,
    }


class SideOut(Schema):
    version: int
    dataset: int
    name: str
    number: int


class LeakOut(Schema):
    """`prompts` and `groups` that are in train in the one version and held out in the other."""

    train: SideOut
    heldout: SideOut
    prompts: int
    groups: int
    train_examples: int
    heldout_examples: int
    shown: list[dict[str, Any]]


class NearTextOut(Schema):
    example: int
    key: str
    excerpt: str


class NearExampleOut(NearTextOut):
    trained: NearTextOut
    similarity: float


class NearOut(Schema):
    """Prompts of `heldout` that are at least `threshold` similar to a prompt in train of `train`, and not the same. `known` is false while
    a worker searches: then the counts are null; ask again later."""

    train: SideOut
    heldout: SideOut
    known: bool
    prompts: int | None
    examples: int | None
    threshold: float | None
    shown: list[NearExampleOut]


class LeakList(Schema):
    """`near`: prompts that are nearly the same. `searched`: by version id, the result of the newest search for leaks, including prompts
    that are nearly the same; a version that was not searched is absent."""

    items: list[LeakOut]
    near: list[NearOut]
    searched: dict[int, dict[str, Any]]
    next: str | None


VersionId = Annotated[int, Field(ge=1, le=2**63 - 1)]


class LeaksQuery(Schema):
    along: list[VersionId] = Field([], max_length=20, description="Ids of versions, each given once")


@router.get(VERSION + "/leaks", response=LeakList, summary="Prompts in train that are held out as well")
def show_leaks(request: HttpRequest, dataset_id: Id, number: Number, asked: Query[LeaksQuery]) -> dict[str, Any]:
    """Within this version, and between it and the versions whose ids are in `along` (give it once for each)."""
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    versions = [version, *access.versions_read(membership, asked.along)]
    ids = [each.pk for each in versions]
    pairs = [VersionPair(train, heldout) for train in versions for heldout in versions if version in (train, heldout)]
    alike = [each.json() for each in near_leaks_of(pairs)]
    return {"items": leaks.leaks(ids), "near": alike, "searched": leaks.looked_for(ids), "next": None}


@router.put(
    VERSION + "/tags/{name}",
    response={200: dict[str, Any]},
    summary="Tag this version; a tag on another version moves here",
)
def tag(request: HttpRequest, dataset_id: Id, number: Number, name: Tag) -> dict[str, Any]:
    membership = require(request, Role.RESEARCHER)
    made = datasets.tag(membership, access.version_write(membership, dataset_id, number), name)
    return {"name": made.name, "version": number}


@router.delete(VERSION + "/tags/{name}", response={204: None}, summary="Remove a tag")
def untag(request: HttpRequest, dataset_id: Id, number: Number, name: Tag) -> Status[None]:
    membership = require(request, Role.RESEARCHER)
    datasets.untag(membership, access.version_write(membership, dataset_id, number), name)
    return Status(204, None)


@router.post(
    VERSION + "/derive/preview",
    response=PreviewOut,
    summary="Examples that a derivation would remove; nothing is written",
)
def preview(request: HttpRequest, dataset_id: Id, number: Number, payload: DeriveIn) -> dict[str, Any]:
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    job = access.curation_of(membership, version, payload.job) if payload.job else None
    found = queries.removal(version, parse(payload.filters), payload.keep, job)
    return {
        "kept": found.kept,
        "removed": found.removed,
        "leaked": found.leaked,
        "exact": True,
        "examples": [
            {"id": each.example_id, "key": each.example.key, "excerpt": each.example.excerpt} for each in found.examples
        ],
    }


@router.post(
    VERSION + "/derive",
    response={202: CurationOut},
    summary="Create a version without the examples that are filtered out",
)
def derive(request: HttpRequest, dataset_id: Id, number: Number, payload: DeriveIn) -> Status[CurationJob]:
    """Responds at once; follow `GET curations/{id}` until it has a `version`."""
    membership = require(request, Role.RESEARCHER)
    version = access.version_write(membership, dataset_id, number)
    job = access.curation_of(membership, version, payload.job) if payload.job else None
    filters = parse(payload.filters)
    return Status(202, curating.derive(membership, version, filters, keep=payload.keep, job=job, note=payload.note))


@router.post(
    VERSION + "/curate",
    response={202: CurationOut},
    summary="Look for duplicates, leaks, idle criteria, bad rubrics, or for examples to train on",
)
def curate(request: HttpRequest, dataset_id: Id, number: Number, payload: CurateIn) -> Status[CurationJob]:
    """Nothing is changed: `derive` with the id of this job can remove what it finds."""
    membership = require(request, Role.RESEARCHER)
    version = access.version_write(membership, dataset_id, number)
    return Status(202, curating.curate(membership, version, payload.kind, payload.params))


@router.get("/curations/{int:job_id}", response=CurationOut, summary="A curation job: its progress and what it found")
def curation(request: HttpRequest, job_id: Id) -> CurationJob:
    return access.curation_read(require(request), job_id)


@router.get("/curations/{int:job_id}/findings", response=FindingList, summary="Findings of a curation job, one by one")
def findings(request: HttpRequest, job_id: Id, cursor: str | None = None, limit: Limit = 50) -> object:
    return queries.findings(access.curation_read(require(request), job_id), cursor, limit)
