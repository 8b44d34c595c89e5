"""The work of an import: read, check, and store everything in one transaction or nothing at all."""

import hashlib
import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic

from django.db import connection, transaction
from django.utils import timezone

from webapp.core import audit, broadcast
from webapp.webhooks.services import announce

from . import queries, versions
from .importers import REGISTRY, Bundle, RowProblem, files_for
from .loading import Loader
from .models import Dataset, DatasetVersion, ImportJob
from .reading import Reader
from .splits import Splits

logger = logging.getLogger(__name__)

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


class _Over(Exception):
    """Ends the transaction without a trace of the rows; carries why the import failed, or the version that is as it
    would have become."""

    def __init__(self, error: str = "", version: DatasetVersion | None = None) -> None:
        self.error = error
        self.version = version


def run(job: ImportJob) -> None:
    """Carries the job to finished or failed. A refused file is a failed job with its reasons, not an exception.

    Raises what is no fault of the file (database away, disk error): the job stays running and is taken up again.
    """
    try:
        with versions.alone(job.workspace_id, job.dataset_name), _Report(job) as report:
            try:
                with transaction.atomic():
                    _finish(job, _load(job, report), unchanged=False)
            except _Over as over:
                if over.version is None:
                    _fail(job, over.error)
                else:
                    with transaction.atomic():
                        _finish(job, over.version, unchanged=True)
    except FileNotFoundError:
        _fail(job, "The file is no longer there; start the import again.")
    else:
        if not job.unchanged:
            versions.analyze(job.counts.get("examples", 0))


class _Report:
    """Gathers problems and tells the page how far the import is, a few times a second at most.

    It tells over a connection of its own: what the import's own transaction writes is seen by nobody until its end.
    """

    def __init__(self, job: ImportJob) -> None:
        job.rejected, job.rejected_count, job.rows_done, job.bytes_done = [], 0, 0, 0
        self.job = job
        self._aside = connection.copy()
        self._told = monotonic()

    def __enter__(self) -> "_Report":
        return self

    def __exit__(self, *error: object) -> None:
        self._aside.close()

    def refuse(self, problem: RowProblem) -> None:
        self.job.rejected_count += 1
        if len(self.job.rejected) < KEPT_PROBLEMS:
            self.job.rejected.append(problem.told())

    def tell(self) -> None:
        if monotonic() - self._told < TELL_EVERY_S:
            return
        self._told = monotonic()
        job = self.job
        job.seen_at = timezone.now()
        with self._aside.cursor() as cursor:
            cursor.execute(
                "UPDATE datasets_importjob SET bytes_done = %s, rows_done = %s, rejected_count = %s, seen_at = %s "
                "WHERE id = %s",
                [job.bytes_done, job.rows_done, job.rejected_count, job.seen_at, job.pk],
            )
        broadcast.send_now(_group(job), _message(job))


def tell(job: ImportJob) -> None:
    broadcast.send(_group(job), _message(job))


def _group(job: ImportJob) -> str:
    return f"workspace.{job.workspace_id}"


def _message(job: ImportJob) -> dict[str, object]:
    return {"type": "import", **queries.import_progress(job)}


def _load(job: ImportJob, report: _Report) -> DatasetVersion:
    """The new version with all rows of the file. Raises _Over when there is none to be made."""
    importer = REGISTRY[job.format]
    known = Dataset.objects.filter(workspace_id=job.workspace_id, name=job.dataset_name).first()
    share = heldout_share(job, known)
    splits = Splits(known, share, as_given=importer.splits == "file" and job.heldout_share is None)
    dataset = known or Dataset.objects.create(
        workspace=job.workspace, name=job.dataset_name, heldout_share=heldout_share(job, None)
    )
    bundle = Bundle(Path(job.file_path), job.file_name)
    names = files_for(bundle, importer)
    splits.until_now()
    loader = Loader(dataset, _lineage(job, bundle, names))
    with closing(loader):
        _take(job, report, Reader(bundle, names, importer, job.mapping, splits), loader)
    job.bytes_done = job.bytes_total
    job.rejected.sort(key=lambda problem: (problem.get("file", ""), problem["line"]))
    if job.rejected_count and not job.keep_good:
        lines = "1 line was" if job.rejected_count == 1 else f"{job.rejected_count:,} lines were"
        job.counts = {"good": loader.count(), "rejected": job.rejected_count}
        raise _Over(f"{lines} refused, so nothing was imported. Correct the file, or import its good lines only.")
    version, new = loader.finish()
    if not version.counts["examples"]:
        raise _Over("The file holds no examples." if not job.rejected_count else "No line of the file can be imported.")
    if not new:
        raise _Over(version=version)
    return version


def _take(job: ImportJob, report: _Report, reader: Reader, loader: Loader) -> None:
    several = len(reader.names) > 1
    for ready in reader.ready():
        for problem in ready.problems:
            report.refuse(RowProblem(problem.line, problem.field, problem.reason, ready.batch.name if several else ""))
        loader.storing = job.keep_good or not job.rejected_count
        for file, line, key, first_file, first_line in loader.take(ready):
            where = f"line {first_line}" + (f" of {reader.names[first_file]}" if first_file != file else "")
            name = reader.names[file] if several else ""
            report.refuse(RowProblem(line, "key", f"the key {key!r} is that of {where} already", name))
        job.rows_done += len(ready.batch.rows)
        job.bytes_done = min(ready.batch.bytes_done, job.bytes_total)
        report.tell()


def heldout_share(job: ImportJob, dataset: Dataset | None) -> float | None:
    """The share asked for, else the dataset's, else the default; None where the file's own splits stand."""
    if job.heldout_share is not None:
        return job.heldout_share
    if REGISTRY[job.format].splits == "file":
        return dataset.heldout_share if dataset else None
    return dataset.heldout_share if dataset and dataset.heldout_share is not None else DEFAULT_HELDOUT_SHARE


def _fail(job: ImportJob, error: str) -> None:
    job.state, job.error, job.finished_at = ImportJob.State.FAILED, error, timezone.now()
    with transaction.atomic():
        job.save()
        audit.record(job.workspace, job.created_by, "import.failed", job, error=error)
        tell(job)
        announce(job.workspace_id, "import.failed", {"import": job.pk, "name": job.dataset_name, "error": error})


def _finish(job: ImportJob, version: DatasetVersion, *, unchanged: bool) -> None:
    job.version, job.unchanged = version, unchanged
    job.counts = {**version.counts, "rejected": job.rejected_count}
    job.state, job.finished_at = ImportJob.State.FINISHED, timezone.now()
    job.save()
    audit.record(job.workspace, job.created_by, "import.finished", version, unchanged=unchanged)
    tell(job)
    facts = queries.version_facts(version)
    announce(job.workspace_id, "import.finished", {"import": job.pk, **facts, "unchanged": unchanged})


def _lineage(job: ImportJob, bundle: Bundle, names: tuple[str, ...]) -> dict[str, object]:
    """Where the version came from: the file by its content, and of several files those that were read."""
    lineage: dict[str, object] = {"from": "import", "import": job.pk, "file": job.file_name, "format": job.format}
    if bundle.path.is_file():
        with bundle.path.open("rb") as file:
            lineage["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    return lineage if bundle.is_single else lineage | {"files": list(names)}
