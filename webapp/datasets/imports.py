"""The work of an import: read, check, stage, and move everything in one transaction or nothing at all."""

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from time import monotonic

from django.db import connection, transaction
from django.utils import timezone

from trainer.contracts import Example
from webapp.core import audit, broadcast
from webapp.webhooks.services import announce

from . import queries, staging
from .digests import side
from .importers import REGISTRY, RowProblem, opened
from .importers.source import Progress
from .models import Dataset, DatasetVersion, ImportJob

logger = logging.getLogger(__name__)

BATCH = 2_000
KEPT_PROBLEMS = 1_000
TELL_EVERY_S = 0.5
DEFAULT_HELDOUT_SHARE = 0.1
ANALYZE_FROM = 5_000  # rows after which the planner's statistics are worth renewing
JOB_LOCK, NAME_LOCK = 7301, 7302  # namespaces of the advisory locks


@contextmanager
def claimed(job_id: int) -> Iterator[ImportJob | None]:
    """The job, marked as running, while this connection holds its lock; None if it is over or someone else has it.

    The lock goes with the connection, so it tells a dead worker from a slow one better than any clock.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [JOB_LOCK, job_id])
        if not cursor.fetchone()[0]:
            yield None
            return
    try:
        waiting = [ImportJob.State.QUEUED, ImportJob.State.RUNNING]
        job = ImportJob.objects.select_related("workspace").filter(id=job_id, state__in=waiting).first()
        if job:
            job.state = ImportJob.State.RUNNING
            job.save(update_fields=["state"])
        yield job
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [JOB_LOCK, job_id])


def run(job: ImportJob) -> None:
    """Carries the job to finished or failed. A refused file is a failed job with its reasons, not an exception.

    Raises what is no fault of the file (database away, disk error): the job stays running and is taken up again.
    """
    try:
        with _alone(job), staging.table():
            report = _Report(job)
            _stage(job, report)
            report.tell(now=True)
            if job.rejected_count and not job.keep_good:
                _refuse(job)
            else:
                _finish(job)
    except FileNotFoundError:
        _fail(job, "The file is no longer there; start the import again.")


@contextmanager
def _alone(job: ImportJob) -> Iterator[None]:
    """One import at a time into a dataset name: splits of known keys are read now and written at the end."""
    name = hashlib.sha256(f"{job.workspace_id}:{job.dataset_name}".encode()).digest()
    key = int.from_bytes(name[:4], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, %s)", [NAME_LOCK, key])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [NAME_LOCK, key])


class _Report:
    """Gathers problems and tells the page how far the import is, a few times a second at most."""

    def __init__(self, job: ImportJob, progress: Progress | None = None) -> None:
        job.rejected, job.rejected_count, job.rows_done, job.bytes_done = [], 0, 0, 0
        self.job = job
        self.progress = progress
        self._told = monotonic()

    def refuse(self, problem: RowProblem) -> None:
        self.job.rejected_count += 1
        if len(self.job.rejected) < KEPT_PROBLEMS:
            self.job.rejected.append(asdict(problem))

    def tell(self, now: bool = False) -> None:
        if not now and monotonic() - self._told < TELL_EVERY_S:
            return
        self._told = monotonic()
        if self.progress:
            self.job.bytes_done = self.progress.bytes_done
        self.job.seen_at = timezone.now()
        self.job.save(update_fields=["bytes_done", "rows_done", "rejected_count", "seen_at"])
        tell(self.job)


def tell(job: ImportJob) -> None:
    broadcast.send(f"workspace.{job.workspace_id}", {"type": "import", **queries.import_progress(job)})


def _stage(job: ImportJob, report: _Report) -> None:
    importer = REGISTRY[job.format]
    splits = _Splits(job)
    with opened(Path(job.file_path)) as (stream, report.progress):
        for batch in _batches(importer.read(stream, job.file_name, job.mapping)):
            good: list[tuple[int, Example]] = []
            for line, row in batch:
                if isinstance(row, RowProblem):
                    report.refuse(row)
                else:
                    good.append((line, row))
            staging.copy(list(_prepared(splits.settle(good), report)))  # read in full: COPY occupies the connection
            job.rows_done += len(batch)
            report.tell()
        job.bytes_done = job.bytes_total
        report.progress = None
    for line, key, first in staging.repeated_keys():
        report.refuse(RowProblem(line, "key", f"the key {key!r} is that of line {first} already"))
    job.rejected.sort(key=lambda problem: problem["line"])


def _batches(rows: Iterator[tuple[int, Example | RowProblem]]) -> Iterator[list[tuple[int, Example | RowProblem]]]:
    while batch := list(islice(rows, BATCH)):
        yield batch


def _prepared(rows: Iterator[tuple[int, Example] | RowProblem], report: _Report) -> Iterator[tuple[object, ...]]:
    for row in rows:
        if isinstance(row, RowProblem):
            report.refuse(row)
            continue
        try:
            yield staging.prepare(*row)
        except ValueError as error:  # an infinite number or half a character: neither JSON nor Postgres takes it
            report.refuse(RowProblem(row[0], "", f"holds a value that cannot be stored: {error}"))


class _Splits:
    """Gives each example its side; a key that has one in an earlier version of the dataset keeps it."""

    def __init__(self, job: ImportJob) -> None:
        self.dataset = Dataset.objects.filter(workspace_id=job.workspace_id, name=job.dataset_name).first()
        self.share = heldout_share(job, self.dataset)
        self.by_file = REGISTRY[job.format].splits == "file" and job.heldout_share is None

    def settle(self, rows: list[tuple[int, Example]]) -> Iterator[tuple[int, Example] | RowProblem]:
        before = self._before([example.key for _, example in rows])
        for line, example in rows:
            had = before.get(example.key)
            if example.split and had and example.split != had:
                reason = f"{example.key!r} is {had} in an earlier version; an example never changes side"
                yield RowProblem(line, "split", reason)
            elif example.split or self.by_file:
                yield line, example
            elif split := had or (None if self.share is None else side(example.key, self.share)):
                yield line, example.model_copy(update={"split": split})
            else:
                yield line, example

    def _before(self, keys: list[str]) -> dict[str, str]:
        if self.dataset is None:
            return {}
        rows = self.dataset.examples.filter(key__in=keys).exclude(split="")
        return dict(rows.values_list("key", "split"))


def heldout_share(job: ImportJob, dataset: Dataset | None) -> float | None:
    """The share asked for, else the dataset's, else the default; None where the file's own splits stand."""
    if job.heldout_share is not None:
        return job.heldout_share
    if REGISTRY[job.format].splits == "file":
        return dataset.heldout_share if dataset else None
    return dataset.heldout_share if dataset and dataset.heldout_share is not None else DEFAULT_HELDOUT_SHARE


def _refuse(job: ImportJob) -> None:
    lines = "1 line was" if job.rejected_count == 1 else f"{job.rejected_count:,} lines were"
    counts, _, _ = staging.facts()
    job.counts = {"good": counts["examples"], "rejected": job.rejected_count}
    _fail(job, f"{lines} refused, so nothing was imported. Correct the file, or import its good lines only.")


def _fail(job: ImportJob, error: str) -> None:
    job.state, job.error, job.finished_at = ImportJob.State.FAILED, error, timezone.now()
    with transaction.atomic():
        job.save()
        audit.record(job.workspace, job.created_by, "import.failed", job, error=error)
        tell(job)
        announce(job.workspace_id, "import.failed", {"import": job.pk, "name": job.dataset_name, "error": error})


def _finish(job: ImportJob) -> None:
    counts, facets, digest = staging.facts()
    if not counts["examples"]:
        _fail(job, "The file holds no examples." if not job.rejected_count else "No line of the file can be imported.")
        return
    with transaction.atomic():
        dataset, _ = Dataset.objects.get_or_create(
            workspace=job.workspace, name=job.dataset_name, defaults={"heldout_share": heldout_share(job, None)}
        )
        same = dataset.versions.filter(digest=digest).order_by("-number").first()
        job.unchanged = same is not None
        job.version = same or _new_version(job, dataset, counts, facets, digest)
        job.counts = {**counts, "rejected": job.rejected_count}
        job.state, job.finished_at = ImportJob.State.FINISHED, timezone.now()
        job.save()
        audit.record(job.workspace, job.created_by, "import.finished", job.version, unchanged=job.unchanged)
        tell(job)
        facts = queries.version_facts(job.version)
        announce(job.workspace_id, "import.finished", {"import": job.pk, **facts, "unchanged": job.unchanged})
    if not job.unchanged and counts["examples"] >= ANALYZE_FROM:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE datasets_example, datasets_versionmember")


def _new_version(
    job: ImportJob, dataset: Dataset, counts: dict[str, int], facets: dict[str, dict[str, int]], digest: str
) -> DatasetVersion:
    last = dataset.versions.order_by("-number").values_list("number", flat=True).first() or 0
    with Path(job.file_path).open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    version = DatasetVersion.objects.create(
        dataset=dataset,
        number=last + 1,
        digest=digest,
        counts=counts,
        facets=facets,
        lineage={"from": "import", "import": job.pk, "file": job.file_name, "format": job.format, "sha256": content},
    )
    staging.move(dataset.pk, version.pk)
    return version
