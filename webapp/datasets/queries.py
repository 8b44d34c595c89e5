"""All reads of datasets. Lists cost the same number of queries whatever their length; pages walk an index."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, QuerySet

from webapp.core.paging import MAX_LIMIT
from webapp.core.problems import Invalid

from . import search
from .models import Dataset, DatasetVersion, Example, ImportJob, VersionMember
from .staging import FACET_VALUES

STREAM_ROWS = 500  # read at a time
LISTED = (
    "id",
    "key",
    "excerpt",
    "split",
    "domain",
    "source",
    "criteria_count",
    "response_count",
    "preference_count",
    "verifiers",
)
SHOWN_PROBLEMS = 20  # in progress messages; the job itself keeps the first 1,000


@dataclass(frozen=True)
class Filters:
    """What the examples of a version are narrowed by; an empty field filters nothing."""

    text: str = ""
    split: str = ""  # train, heldout or none
    domain: str = ""
    source: str = ""
    rubric: bool | None = None
    preferences: bool | None = None
    verifier: str = ""


@dataclass(frozen=True)
class ExamplePage:
    """`items` in the version's order; `next` is the cursor of what follows, None at the end."""

    items: list[VersionMember]
    next: str | None


def datasets(workspace_id: int) -> QuerySet[Dataset]:
    """The workspace's datasets, each with `latest`: a list of its newest version, or empty before the first."""
    newest = DatasetVersion.objects.order_by("dataset_id", "-number").distinct("dataset_id")
    return Dataset.objects.filter(workspace_id=workspace_id).prefetch_related(
        Prefetch("versions", queryset=newest, to_attr="latest")
    )


def versions(dataset: Dataset) -> QuerySet[DatasetVersion]:
    return DatasetVersion.objects.filter(dataset=dataset).select_related("dataset").order_by("-number")


def version_facts(version: DatasetVersion) -> dict[str, Any]:
    """What a webhook tells of a version."""
    dataset = version.dataset
    return {"dataset": dataset.pk, "name": dataset.name, "version": version.number, "digest": version.digest}


def imports(workspace_id: int) -> QuerySet[ImportJob]:
    return ImportJob.objects.filter(workspace_id=workspace_id).select_related("version__dataset").defer("rejected")


def examples(version: DatasetVersion, filters: Filters, cursor: str | None = None, limit: int = 50) -> ExamplePage:
    """The version's examples after `cursor`. Raises Invalid at `cursor`, `limit` or `split`."""
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid("The page size is out of bounds.", {"limit": f"must be between 1 and {MAX_LIMIT}"})
    if _surely_none(version, filters):
        return ExamplePage([], None)
    members = _filtered(VersionMember.objects.filter(version=version), filters)
    if cursor:
        members = members.filter(position__gt=_position(cursor))
    listed = [f"example__{name}" for name in LISTED]
    rows = list(
        members.select_related("example").only("position", "version_id", *listed).order_by("position")[: limit + 1]
    )
    return ExamplePage(rows[:limit], str(rows[limit - 1].position) if len(rows) > limit else None)


def _surely_none(version: DatasetVersion, filters: Filters) -> bool:
    """Whether the version's own facets rule every example out: else a filter without a match walks them all.

    Facets keep the commonest values only, so a missing value proves something only where the list is not full.
    """
    for facet, value in (("domain", filters.domain), ("source", filters.source), ("verifier", filters.verifier)):
        known = version.facets.get(facet)
        if value and known is not None and value not in known and len(known) < FACET_VALUES:
            return True
    return False


def _position(cursor: str) -> int:
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise Invalid("The cursor is not one this list gave.", {"cursor": "take it from `next`"})
    return int(cursor)


def _filtered(members: QuerySet[VersionMember], filters: Filters) -> QuerySet[VersionMember]:
    if filters.split:
        members = members.filter(example__split=_split(filters.split))
    if filters.domain:
        members = members.filter(example__domain=filters.domain)
    if filters.source:
        members = members.filter(example__source=filters.source)
    if filters.verifier:
        members = members.filter(example__verifiers__contains=[filters.verifier])
    for name, wanted in (("criteria_count", filters.rubric), ("preference_count", filters.preferences)):
        if wanted is not None:
            members = members.filter(**{f"example__{name}__gt" if wanted else f"example__{name}": 0})
    if filters.text.strip():
        words = search.query(filters.text)
        members = members.filter(example__search__matches=words) if words else members.none()
    return members


def _split(value: str) -> str:
    if value not in ("train", "heldout", "none"):
        raise Invalid("The split is not known.", {"split": "must be train, heldout or none"})
    return "" if value == "none" else value


def count_up_to(version: DatasetVersion, filters: Filters, most: int = 1_000) -> int:
    """How many examples the filters leave, counted no further than `most`."""
    return _filtered(VersionMember.objects.filter(version=version), filters)[:most].count()


def appearances(example: Example) -> QuerySet[VersionMember]:
    """The versions that hold this example, newest first."""
    return VersionMember.objects.filter(example=example).select_related("version").order_by("-version__number")


def stream_canonical(version: DatasetVersion | int, after: int = -1) -> Iterator[tuple[int, str]]:
    """(position, canonical line) of every example behind `after`, in the version's order; memory stays flat."""
    version_id = version if isinstance(version, int) else version.pk
    members = VersionMember.objects.filter(version_id=version_id).order_by("position")
    while rows := list(members.filter(position__gt=after).values_list("position", "example__canonical")[:STREAM_ROWS]):
        yield from rows
        after = rows[-1][0]


def import_progress(job: ImportJob) -> dict[str, Any]:
    """What the API and the socket tell of an import while it runs; the problems are the first few."""
    version = job.version
    return {
        "id": job.pk,
        "state": job.state,
        "dataset": job.dataset_name,
        "file": job.file_name,
        "format": job.format,
        "keep_good": job.keep_good,
        "bytes_done": job.bytes_done,
        "bytes_total": job.bytes_total,
        "rows_done": job.rows_done,
        "counts": job.counts,
        "rejected_count": job.rejected_count,
        "rejected": job.rejected[:SHOWN_PROBLEMS],
        "unchanged": job.unchanged,
        "error": job.error,
        "version": version
        and {"id": version.pk, "dataset_id": version.dataset_id, "number": version.number, "digest": version.digest},
        "created_at": job.created_at.isoformat(),
        "finished_at": job.finished_at and job.finished_at.isoformat(),
    }


def import_report(job: ImportJob) -> dict[str, Any]:
    """The outcome of an import in full: what the command prints and the API answers."""
    version = job.version
    return {
        "id": version and version.dataset_id,
        "version": version and version.number,
        "version_id": version and version.pk,
        "digest": version and version.digest,
        "name": job.dataset_name,
        "format": job.format,
        "unchanged": job.unchanged,
        "counts": job.counts,
        "rejected": [{"file": job.file_name, **problem} for problem in job.rejected],
        "rejected_count": job.rejected_count,
        "error": job.error,
    }
