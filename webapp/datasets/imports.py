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

from . import queries, staging, versions
from .importers import REGISTRY, RowProblem, opened
from .importers.source import Progress
from .models import Dataset, ImportJob
from .splits import Splits

logger = logging.getLogger(__name__)

BATCH = 2_000
KEPT_PROBLEMS = 1_000
TELL_EVERY_S = 0.5
DEFAULT_HELDOUT_SHARE = 0.1
JOB_LOCK = 7301  # namespace of its advisory locks


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
        with versions.alone(job.workspace_id, job.dataset_name), staging.table():
            report = _Report(job)
            _stage(job, report)
            report.tell(now=True)
            if job.rejected_count and not job.keep_good:
                _refuse(job)
            else:
                _finish(job)
    except FileNotFoundError:
        _fail(job, "The file is no longer there; start the import again.")


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
    splits = _splits(job)
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


def _splits(job: ImportJob) -> Splits:
    dataset = Dataset.objects.filter(workspace_id=job.workspace_id, name=job.dataset_name).first()
    as_given = REGISTRY[job.format].splits == "file" and job.heldout_share is None
    return Splits(dataset, heldout_share(job, dataset), as_given)


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


def _finish(job: ImportJob) -> None:
    counts, facets, digest = staging.facts()
    if not counts["examples"]:
        _fail(job, "The file holds no examples." if not job.rejected_count else "No line of the file can be imported.")
        return
    with transaction.atomic():
        dataset, _ = Dataset.objects.get_or_create(
            workspace=job.workspace, name=job.dataset_name, defaults={"heldout_share": heldout_share(job, None)}
        )
        job.version, made = versions.of_staged(dataset, counts, facets, digest, lambda: _lineage(job))
        job.unchanged = not made
        job.counts = {**counts, "rejected": job.rejected_count}
        job.state, job.finished_at = ImportJob.State.FINISHED, timezone.now()
        job.save()
        audit.record(job.workspace, job.created_by, "import.finished", job.version, unchanged=job.unchanged)
        tell(job)
    if not job.unchanged:
        versions.analyze(counts["examples"])


def _lineage(job: ImportJob) -> dict[str, object]:
    with Path(job.file_path).open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return {"from": "import", "import": job.pk, "file": job.file_name, "format": job.format, "sha256": content}
