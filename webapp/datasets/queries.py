"""All reads of datasets. A list takes the same number of queries for any length, and pages walk an index."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Count, Prefetch, Q, QuerySet, Sum

from trainer.contracts import Example as ExampleRecord
from webapp.core.background.jobs import OPEN
from webapp.core.database.paging import MAX_LIMIT, Page, page
from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number

from .columns.filters import Filters
from .exploration import narrowing
from .formats.traces.trace import PARTS_MISSING
from .leakage import leaks
from .models import CurationJob, Dataset, DatasetVersion, Example, Finding, ImportJob, SavedView, VersionMember

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
    "response_length",
    "length_ratio",
    "strength",
    "agreement",
    "verifiers",
)
SHOWN_PROBLEMS = 20  # in progress messages; the job itself keeps the first 1,000


@dataclass(frozen=True)
class ExamplePage:
    """`items` in the version's order. `next` is the cursor of the next page; None at the end."""

    items: list[VersionMember]
    next: str | None


def offered_versions(workspace_id: int, keep: DatasetVersion | None = None) -> QuerySet[DatasetVersion]:
    """The versions that forms offer: those of the datasets on the list, with their datasets, in no order. `keep`, which a form names
    already, is included even if its dataset was archived since."""
    on_the_list = Q(dataset__archived_at=None) | Q(pk=keep.pk if keep else None)
    return DatasetVersion.objects.filter(on_the_list, dataset__workspace_id=workspace_id).select_related("dataset")


def datasets(workspace_id: int, *, archived: bool = False) -> QuerySet[Dataset]:
    """The workspace's datasets, or its archived ones, each with `latest`: a list with its newest version, empty if there is none."""
    newest = DatasetVersion.objects.order_by("dataset_id", "-number").distinct("dataset_id")
    rows = Dataset.objects.filter(workspace_id=workspace_id, archived_at__isnull=not archived)
    return rows.prefetch_related(Prefetch("versions", queryset=newest, to_attr="latest"))


def versions(dataset: Dataset) -> QuerySet[DatasetVersion]:
    return DatasetVersion.objects.filter(dataset=dataset).select_related("dataset").order_by("-number")


def version_facts(version: DatasetVersion) -> dict[str, Any]:
    """The facts about a version in a webhook."""
    dataset = version.dataset
    return {"dataset": dataset.pk, "name": dataset.name, "version": version.number, "digest": version.digest}


def imports(workspace_id: int) -> QuerySet[ImportJob]:
    return ImportJob.objects.filter(workspace_id=workspace_id).select_related("version__dataset").defer("rejected")


def examples(version: DatasetVersion, filters: Filters, cursor: str | None = None, limit: int = 50) -> ExamplePage:
    """The version's examples after `cursor`. Raises Invalid at `cursor` or `limit`."""
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid("The page size is too small or too large.", {"limit": f"must be between 1 and {MAX_LIMIT}"})
    after = _position(cursor) if cursor else -1
    positions = narrowing.positions(version, filters, after, limit + 1)
    rows = list(members(version, positions[:limit]))
    return ExamplePage(rows, str(positions[limit - 1]) if len(positions) > limit else None)


def members(version: DatasetVersion, positions: Sequence[int]) -> QuerySet[VersionMember]:
    """The members at these positions, with those columns of their examples that lists show."""
    listed = [f"example__{name}" for name in LISTED]
    found = VersionMember.objects.filter(version=version, position__in=positions).select_related("example")
    return found.only("position", "version_id", *listed).order_by("position")


UNDECIDED = """
SELECT id, jsonb_path_query_array(canonical::jsonb, '$.preferences[*].verdict') FROM datasets_example WHERE id = ANY(%s)
"""
NOT_COMPARED = {"both_bad": "both bad", "cannot_assess": "cannot assess"}


def undecided(examples: Iterable[Example]) -> dict[int, list[str]]:
    """The judgements of examples that people have judged without a preference, by the names of NOT_COMPARED: {id: ["both_bad"]}."""
    ids = [each.pk for each in examples if each.strength is None and each.preference_count]
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(UNDECIDED, [ids])
        said = {pk: json.loads(verdicts) for pk, verdicts in cursor.fetchall()}
    return {pk: [name for name in NOT_COMPARED if name in verdicts] for pk, verdicts in said.items()}


def _position(cursor: str) -> int:
    found = whole_number(cursor, 9)
    if found is None:
        raise Invalid("This cursor does not belong to this list.", {"cursor": "take the cursor from `next`"})
    return found


@dataclass(frozen=True)
class RemovalPreview:
    """The removals of a derivation. `examples` are the first of the removed ones. `leaked` prompts and groups would still be on both
    sides of the split."""

    kept: int
    removed: int
    leaked: int
    examples: list[VersionMember]


def removal(version: DatasetVersion, filters: Filters, keep: bool, job: CurationJob | None) -> RemovalPreview:
    gone = narrowing.removed(version, filters, keep, job)
    shown = list(members(version, [int(each) for each in gone[:SHOWN_PROBLEMS]]))
    leaked = leaks.leaks_within(version, gone).count
    return RemovalPreview(version.counts.get("examples", 0) - len(gone), len(gone), leaked, shown)


def keys(version: DatasetVersion) -> Iterator[tuple[int, str]]:
    """(position, key) of every example, in order."""
    rows = VersionMember.objects.filter(version=version).order_by("position")
    return rows.values_list("position", "example__key").iterator(chunk_size=20 * STREAM_ROWS)


def views(dataset: Dataset) -> QuerySet[SavedView]:
    return SavedView.objects.filter(dataset=dataset).order_by("name")[:200]


def curations(version: DatasetVersion) -> QuerySet[CurationJob]:
    return CurationJob.objects.filter(version=version).select_related("made", "version").order_by("-id")


def findings(job: CurationJob, cursor: str | None = None, limit: int = 50) -> Page[Finding]:
    return page(Finding.objects.filter(job=job), cursor, limit, "id")


def removable(job: CurationJob) -> int:
    return Finding.objects.filter(job=job, removes=True).values("position").distinct().count()


@dataclass(frozen=True)
class FoundExample:
    """A finding with its example, and for a duplicate or a leak the example that stays."""

    finding: Finding
    example: Example
    stays: Example | None


def found_examples(job: CurationJob, items: list[Finding]) -> list[FoundExample]:
    duplicates = job.kind == CurationJob.Kind.DUPLICATES
    places = {each.position for each in items} | ({each.group for each in items} if duplicates else set())
    held = {member.position: member.example for member in members(job.version, sorted(places))}
    if job.kind == CurationJob.Kind.LEAKS:
        others = Example.objects.only("id", "key", "excerpt").in_bulk(each.detail["example"] for each in items)
        return [FoundExample(each, held[each.position], others.get(each.detail["example"])) for each in items]
    return [FoundExample(each, held[each.position], held[each.group] if duplicates else None) for each in items]


def appearances(example: Example) -> QuerySet[VersionMember]:
    """The versions that hold this example, newest first."""
    held = VersionMember.objects.filter(example=example).exclude(version__digest="")
    return held.select_related("version").order_by("-version__number")


def neighbour_positions(member: VersionMember) -> dict[str, int]:
    """{"before": id, "after": id} of the neighbours of this example in its version, if it has them."""
    places = {member.position - 1: "before", member.position + 1: "after"}
    rows = VersionMember.objects.filter(version_id=member.version_id, position__in=places)
    return {places[position]: example_id for position, example_id in rows.values_list("position", "example_id")}


def other_contents(example: Example) -> list[Example]:
    """The other examples with this key in the dataset's versions, newest first."""
    rows = Example.objects.filter(dataset_id=example.dataset_id, key=example.key).exclude(pk=example.pk)
    return list(rows.only("id", "created_at").order_by("-id")[:20])


def stream_canonical(version: DatasetVersion | int, split: str | None = None) -> Iterator[tuple[int, str]]:
    """(position, canonical line) of every example, in the version's order. Memory does not grow with the version. With
    `split`, only examples of that side; with an empty one, only those without a side."""
    version_id = version if isinstance(version, int) else version.pk
    members = VersionMember.objects.filter(version_id=version_id).order_by("position")
    if split is not None:
        members = members.filter(example__split=split)
    after = -1
    while rows := list(members.filter(position__gt=after).values_list("position", "example__canonical")[:STREAM_ROWS]):
        yield from rows
        after = rows[-1][0]


def examples_by_key(version: DatasetVersion, keys: Sequence[str]) -> dict[str, ExampleRecord]:
    """The examples of the version with one of these keys, by key."""
    found: dict[str, ExampleRecord] = {}
    wanted = iter(dict.fromkeys(keys))
    while batch := list(islice(wanted, STREAM_ROWS)):
        rows = VersionMember.objects.filter(
            version=version, example__key__in=batch, example__dataset_id=version.dataset_id
        )
        for line in rows.values_list("example__canonical", flat=True):
            example = ExampleRecord.model_validate_json(line)
            found[example.key] = example
    return found


def import_progress(job: ImportJob) -> dict[str, Any]:
    """The progress of an import for the API and the socket, with the first few problems."""
    return {**import_facts(job), "rejected": job.rejected[:SHOWN_PROBLEMS]}


def import_facts(job: ImportJob) -> dict[str, Any]:
    """The facts of an import without its problems, which are not read for an import in a list."""
    version = job.version
    return {
        "id": job.pk,
        "state": job.state,
        "cancel_asked": job.cancel_asked,
        "dataset": job.dataset_name,
        "file": job.file_name,
        "format": job.format,
        "keep_good": job.keep_good,
        "origin": job.origin,
        "bytes_done": job.bytes_done,
        "bytes_total": job.bytes_total,
        "rows_done": job.rows_done,
        "counts": job.counts,
        "overlaps": job.overlaps,
        "unsaid": job.unsaid,
        "rejected_count": job.rejected_count,
        "unchanged": job.unchanged,
        "error": job.error,
        "version": version
        and {"id": version.pk, "dataset_id": version.dataset_id, "number": version.number, "digest": version.digest},
        "created_at": job.created_at.isoformat(),
        "finished_at": job.finished_at and job.finished_at.isoformat(),
    }


class ImportUse(NamedTuple):
    """The number of imports that are under way, and the bytes of their files and of the files whose version still exists."""

    waiting: int
    bytes: int


def import_use(workspace_id: int) -> ImportUse:
    return import_uses([workspace_id]).get(workspace_id, ImportUse(0, 0))


def import_uses(workspace_ids: Sequence[int]) -> dict[int, ImportUse]:
    """{workspace id: the use of its imports}, for workspaces with imports."""
    waiting = Q(state__in=OPEN)
    rows = ImportJob.objects.filter(workspace_id__in=workspace_ids).values_list("workspace_id")
    kept = waiting | Q(version__isnull=False, unchanged=False)
    counted = rows.annotate(waiting=Count("id", filter=waiting), bytes=Sum("bytes_total", filter=kept, default=0))
    return {workspace_id: ImportUse(*rest) for workspace_id, *rest in counted}


def import_report(job: ImportJob) -> dict[str, Any]:
    """The full outcome of an import, which the command prints and the API answers."""
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
        "overlaps": job.overlaps,
        "unsaid": job.unsaid,
        "rejected": [{"file": job.file_name, **problem} for problem in job.rejected],
        "rejected_count": job.rejected_count,
        "error": job.error,
    }


def never_begun(name: str, format: str, error: str) -> dict[str, Any]:
    """The facts of an import that was refused before there was a job."""
    return import_report(ImportJob(dataset_name=name, format=format, error=error))


def not_imported(version: DatasetVersion) -> dict[str, int]:
    """{part of traces for which an example has no place: how many times}, for a whole version."""
    found: Counter[str] = Counter()
    examples = Example.objects.filter(memberships__version=version, canonical__contains=f'"{PARTS_MISSING}"')
    for canonical in examples.values_list("canonical", flat=True).iterator():
        found.update(json.loads(canonical).get("meta", {}).get("not_imported", {}))
    return dict(found.most_common())


def version_of(workspace_id: int, id: int | None, name: str | None, number: int | None) -> DatasetVersion | None:
    """The version with this number, or the newest, of the workspace's dataset with this id or, without an id, with this name."""
    if id is None and not name:
        return None
    which = {"dataset__name": name} if id is None else {"dataset_id": id}
    found = DatasetVersion.objects.filter(dataset__workspace_id=workspace_id, **which).select_related("dataset")
    if number is not None:
        found = found.filter(number=number)
    return found.order_by("-number").first()
