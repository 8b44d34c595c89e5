"""Datasets over the API: list, versions, examples, import, freeze, export."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import File, Form, Router, Schema, Status
from ninja import Path as InPath
from ninja.files import UploadedFile
from pydantic import Field

from webapp.accounts.access import require
from webapp.accounts.models import Role
from webapp.core.database.paging import Limit, page
from webapp.core.problems import Invalid
from webapp.core.requests.limits import count_seconds
from webapp.core.requests.openapi import StrictIn

from .. import access, housekeeping, queries
from ..formats.importers import REGISTRY
from ..ingest import services as imports
from ..ingest import uploads
from ..ingest.inspection import check_mapping
from ..ingest.preview import preview
from ..ingest.target import checked_target
from ..models import Dataset, DatasetVersion, Example, ImportJob
from ..versions import services as datasets

router = Router(tags=["datasets"])
Id = Annotated[int, InPath(ge=1, le=2**63 - 1)]
Number = Annotated[int, InPath(ge=1, le=2**31 - 1)]


class VersionOut(Schema):
    id: int
    number: int
    state: str
    digest: str
    counts: dict[str, int]
    facets: dict[str, dict[str, int]]
    lineage: dict[str, Any]
    created_at: datetime
    frozen_at: datetime | None


class DatasetOut(Schema):
    id: int
    name: str
    description: str
    licence: str
    heldout_share: float | None
    group_by: str
    archived_at: datetime | None
    deleting_at: datetime | None = Field(description="The time at which a worker began to delete it")
    delete_problem: str = Field(description="The reason why a worker could not delete it; empty if nothing is wrong")
    created_at: datetime
    latest: VersionOut | None

    @staticmethod
    def resolve_latest(row: Dataset) -> DatasetVersion | None:
        latest = getattr(row, "latest", None)
        if latest is None:
            return queries.versions(row).first()
        return latest[0] if latest else None


class DatasetList(Schema):
    items: list[DatasetOut]
    next: str | None


class VersionList(Schema):
    items: list[VersionOut]
    next: str | None


class ExampleOut(Schema):
    id: int
    dataset_id: int
    digest: str
    content: dict[str, Any]
    versions: list[int]


class ImportOut(Schema):
    id: int
    state: Literal["queued", "running", "finished", "failed", "cancelled"]
    cancel_asked: bool = Field(description="While it runs: it was cancelled and is about to end")
    dataset: str
    file: str
    format: str
    keep_good: bool
    origin: dict[str, Any] = Field(
        description="Rows that a worker gathers, such as responses of a run, and their counts; empty: a file was sent"
    )
    bytes_done: int
    bytes_total: int
    rows_done: int
    counts: dict[str, int]
    overlaps: dict[str, Any] = Field(description="Prompts that other datasets have on the other side of the split")
    unsaid: dict[str, int] = Field(
        description="Parts of another tool's files that examples cannot hold, in words, each with its number of rows"
    )
    rejected_count: int
    rejected: list[dict[str, Any]]
    unchanged: bool
    error: str
    version: dict[str, Any] | None
    created_at: datetime
    finished_at: datetime | None


class ImportList(Schema):
    items: list[ImportOut]
    next: str | None


class ImportForm(Schema):
    name: str = Field(min_length=1, max_length=120, description="The dataset; an existing one gets a new version")
    format: str = Field("auto", description="An importer's name, or auto")
    mapping: str = Field("", description='JSON object: our field -> column, such as {"prompt": "question"}')
    keep_good: bool = Field(False, description="If a file has bad lines, import the good ones")
    heldout_share: float | None = Field(
        None, ge=0, le=1, description="Share of the examples without a split that is held out"
    )
    group_by: str = Field(
        "", description="prompt, domain, source or meta.NAME: examples with the same value go to one side of the split"
    )


class PreviewForm(Schema):
    format: str = "auto"
    mapping: str = ""
    name: str = Field(
        "",
        max_length=120,
        description="The dataset that gets the version: its sides of the split stay, and it is compared with other datasets",
    )
    heldout_share: float | None = Field(None, ge=0, le=1)
    group_by: str = ""


class FormatOut(Schema):
    name: str
    label: str
    help: str
    mappable: bool = Field(description="Columns can be named by `mapping`")


class FormatList(Schema):
    items: list[FormatOut]
    next: str | None


class DescribeIn(StrictIn):
    description: str = Field(max_length=20_000)
    licence: str = Field("", max_length=120)


@router.get("/datasets", response=DatasetList, summary="The datasets of this workspace, newest first")
def list_datasets(request: HttpRequest, cursor: str | None = None, limit: Limit = 50, archived: bool = False) -> object:
    """`archived` lists the archived datasets, and only those."""
    rows = queries.datasets(access.may_read(require(request)).workspace_id, archived=archived)
    return page(rows, cursor, limit, "-id")


@router.get("/datasets/formats", response=FormatList, summary="The formats that can be imported")
def formats(request: HttpRequest) -> dict[str, Any]:
    access.may_read(require(request))
    items = [{"name": i.name, "label": i.label, "help": i.help, "mappable": i.mappable} for i in REGISTRY.values()]
    return {"items": items, "next": None}


@router.post("/datasets/import", response={202: ImportOut}, summary="Import a file as a new version of a dataset")
def start_import(request: HttpRequest, file: File[UploadedFile], form: Form[ImportForm]) -> Status[dict[str, Any]]:
    """Responds at once; follow `GET imports/{id}`. A malformed line refuses the whole file unless `keep_good`."""
    membership = access.may_write(require(request))
    with uploads.uploaded(file.name or "upload", file) as path, count_seconds(membership.user_id):
        job = imports.start_import(
            membership,
            path,
            file_name=path.name,
            name=form.name,
            format=form.format,
            mapping=_mapping(form.mapping),
            keep_good=form.keep_good,
            heldout_share=form.heldout_share,
            group_by=form.group_by,
        )
    return Status(202, _import(job))


@router.post(
    "/datasets/preview",
    response=dict[str, Any],
    summary="Show the first rows of a file as an import would read them; nothing is written",
)
def show_preview(request: HttpRequest, file: File[UploadedFile], form: Form[PreviewForm]) -> dict[str, Any]:
    membership = access.may_write(require(request))
    target = checked_target(membership.workspace_id, form.name, form.heldout_share, form.group_by)
    path = uploads.store_upload(file.name or "upload", file)
    try:
        with count_seconds(membership.user_id):
            mapping = _mapping(form.mapping)
            shown = preview(path, path.name, form.format, mapping, target)
            complete = shown["all_columns"] or (bool(mapping) and shown["guessed"])
            check_mapping(mapping, shown["format"], shown["columns"], complete=complete)
            return shown
    finally:
        uploads.discard_upload(path)


def _mapping(text: str) -> dict[str, str]:
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Invalid("The mapping is not JSON.", {"mapping": str(error)}) from error
    if not isinstance(found, dict) or not all(isinstance(column, str) for column in found.values()):
        raise Invalid("The mapping is not a JSON object.", {"mapping": "must be {our field: column}"})
    return {field: column for field, column in found.items() if column}


def _import(job: ImportJob) -> dict[str, Any]:
    return {**queries.import_facts(job), "rejected": job.rejected}


@router.get("/imports", response=ImportList, summary="Imports, newest first, without their refused lines")
def list_imports(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    jobs = page(queries.imports(access.may_read(require(request)).workspace_id), cursor, limit, "-id")
    return {"items": [{**queries.import_facts(job), "rejected": []} for job in jobs.items], "next": jobs.next}


@router.get("/imports/{int:job_id}", response=ImportOut, summary="An import, with the first 1,000 refused lines")
def get_import(request: HttpRequest, job_id: Id) -> dict[str, Any]:
    return _import(access.import_read(require(request), job_id))


@router.post("/imports/{int:job_id}/cancel", response=ImportOut, summary="Cancel an import; none of its rows stay")
def cancel_import(request: HttpRequest, job_id: Id) -> dict[str, Any]:
    """A running import ends a moment later: follow `GET imports/{id}`. 409 if it is finished or failed."""
    membership = require(request, Role.RESEARCHER)
    return _import(imports.cancel_import(membership, access.import_write(membership, job_id)))


@router.get("/datasets/{int:dataset_id}", response=DatasetOut, summary="A dataset with its newest version")
def get_dataset(request: HttpRequest, dataset_id: Id) -> Dataset:
    return access.dataset_read(require(request), dataset_id)


@router.patch("/datasets/{int:dataset_id}", response=DatasetOut, summary="Describe a dataset")
def describe(request: HttpRequest, dataset_id: Id, payload: DescribeIn) -> Dataset:
    membership = require(request, Role.RESEARCHER)
    dataset = access.dataset_write(membership, dataset_id)
    return datasets.describe(membership, dataset, description=payload.description, licence=payload.licence)


class DatasetNameIn(StrictIn):
    name: str = Field(min_length=1, max_length=120)


class DatasetArchiveIn(StrictIn):
    archived: bool = Field(description="False puts it back on the lists")


class DependentOut(Schema):
    """`names` are those of the first few."""

    kind: str
    count: int
    names: list[str]


class DependentList(Schema):
    items: list[DependentOut]
    next: str | None


@router.post("/datasets/{int:dataset_id}/rename", response=DatasetOut, summary="Rename a dataset")
def rename(request: HttpRequest, dataset_id: Id, payload: DatasetNameIn) -> Dataset:
    """409 while an import or a check of it is under way."""
    membership = require(request, Role.RESEARCHER)
    return housekeeping.rename(membership, access.dataset_write(membership, dataset_id), payload.name)


@router.post("/datasets/{int:dataset_id}/archive", response=DatasetOut, summary="Archive a dataset")
def archive(request: HttpRequest, dataset_id: Id, payload: DatasetArchiveIn) -> Dataset:
    """Rows that depend on the dataset keep working; nothing is imported into it until it is restored."""
    membership = require(request, Role.RESEARCHER)
    return housekeeping.archive(membership, access.dataset_write(membership, dataset_id), archived=payload.archived)


@router.get(
    "/datasets/{int:dataset_id}/dependents",
    response=DependentList,
    summary="Rows that depend on a dataset, so that it cannot be deleted",
)
def dependents(request: HttpRequest, dataset_id: Id) -> dict[str, Any]:
    items = housekeeping.dependents(access.dataset_read(require(request), dataset_id))
    return {"items": [vars(each) for each in items], "next": None}


@router.delete(
    "/datasets/{int:dataset_id}",
    response={204: None, 202: DatasetOut},
    summary="Delete a dataset with all its versions",
)
def delete(request: HttpRequest, dataset_id: Id) -> Status[Any]:
    """409 while something depends on it, which the message names. 202: the dataset is large, and a worker deletes it; afterwards it is a
    404, or `delete_problem` says why it still exists."""
    membership = require(request, Role.RESEARCHER)
    dataset = access.dataset_write(membership, dataset_id)
    if housekeeping.delete(membership, dataset):
        return Status(204, None)
    dataset.refresh_from_db()
    return Status(202, dataset)


@router.get("/datasets/{int:dataset_id}/versions", response=VersionList, summary="Versions, newest first")
def list_versions(request: HttpRequest, dataset_id: Id, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.versions(access.dataset_read(require(request), dataset_id)), cursor, limit, "-id")


@router.get("/datasets/{int:dataset_id}/versions/{int:number}", response=VersionOut, summary="One version")
def get_version(request: HttpRequest, dataset_id: Id, number: Number) -> DatasetVersion:
    return access.version_read(require(request), dataset_id, number)


@router.post("/datasets/{int:dataset_id}/versions/{int:number}/freeze", response=VersionOut, summary="Freeze a version")
def freeze(request: HttpRequest, dataset_id: Id, number: Number) -> DatasetVersion:
    membership = require(request, Role.RESEARCHER)
    return datasets.freeze(membership, access.version_write(membership, dataset_id, number))


@router.get(
    "/examples/{int:example_id}", response=ExampleOut, summary="One example with everything that is known about it"
)
def get_example(request: HttpRequest, example_id: Id) -> dict[str, Any]:
    row: Example = access.example_read(require(request), example_id)
    numbers = [member.version.number for member in queries.appearances(row)]
    shown = {"id": row.pk, "dataset_id": row.dataset_id, "digest": row.digest}
    return {**shown, "content": row.content, "versions": numbers}
