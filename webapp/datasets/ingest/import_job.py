"""The work of an import: it reads, checks, and stores either everything or nothing.

Rows are committed batch by batch into a version that nobody sees yet. So an import whose worker died continues after the last batch, and a
refused import removes what it stored.
"""

import logging
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from trainer.contracts.plurals import with_noun
from trainer.files import digest_of
from webapp.core import broadcast
from webapp.core.auditing import audit
from webapp.core.background import jobs
from webapp.core.database import locks
from webapp.core.problems import Invalid, Problem
from webapp.files.records import RowProblem
from webapp.webhooks.services import announce

from .. import queries
from ..formats.importers import TRACES
from ..leakage import leaks, near_leaks
from ..models import NOT_IMPORTED, Dataset, DatasetVersion, ImportJob
from ..versions import earlier_splits, planner, writer
from ..versions.split_rule import Settled
from . import dropped_content, generated_files, inspection, processes
from .checkpoint import ImportCheckpoint, source
from .inspection import ImportSource
from .loader import Loader, begin, discard, intact
from .reader import LoadBatch, Reader, Sides
from .target import ImportTarget, rule_of, share_of

logger = logging.getLogger(__name__)

IMPORT = jobs.JobKind(ImportJob.objects.select_related("workspace"), locks.Work.IMPORT, "workers.imports.run")
CANCELLED = "The import was cancelled. Nothing was imported."
KEPT_PROBLEMS = 1_000
SMALL = 8_000_000  # bytes: to read a file up to this size takes less time than to start a process
DEATHS = 3  # of the reading process, or errors of ours, at one place: after these nobody tries again
PROGRESS = ["bytes_done", "rows_done", "rejected_count", "taken"]
OUTCOME = [
    *PROGRESS,
    "rejected",
    "counts",
    "overlaps",
    "unsaid",
    "unchanged",
    "version",
    "state",
    "error",
    "finished_at",
]
PASSES = (
    3  # over a file that puts a prompt on both sides: the first finds it, the second settles it, the third is spare
)
Pieces = Generator[LoadBatch, None, None]


class _Refused(Exception):
    """Nothing is imported; the message says why."""


class _Cancelled(Exception):
    """Somebody cancelled the import while it ran."""


def run(job: ImportJob) -> None:
    """Carries the job to its end, from where an earlier worker left it. A refused file is a failed job with its reasons,
    not an exception.

    Raises errors that the file did not cause (database away, disk error): the job stays running and is taken up again. An error that comes
    again at the same place ends the job; only a missing database does not, because it comes back.
    """
    with writer.lock_dataset_name(job.workspace_id, job.dataset_name):
        try:
            _carry(job)
        except _Cancelled:
            cancel(job)
        except FileNotFoundError:
            _fail(job, "The file is gone. Start the import again.")
        except _Refused as refused:
            _fail(job, str(refused))
        except (processes.Endless, processes.TooLarge) as error:
            _fail(job, f"{error} Nothing was imported. Import it in smaller parts, or with shorter rows.")
        except jobs.NOT_ITS_FAULT:
            raise
        except Exception as error:  # any error, because a job that never ends could not be removed either
            if not _given_up(job, error):
                raise
    if job.state == ImportJob.State.FINISHED and not job.unchanged:
        planner.analyze(job.counts.get("examples", 0))


def _given_up(job: ImportJob, error: Exception) -> bool:
    """Notes that the work broke off at this place. If this happens too often, the import fails."""
    job.refresh_from_db()  # the object has changes of a transaction that was rolled back
    taken = ImportCheckpoint.of(job.taken)
    deaths = taken.deaths + 1 if taken else DEATHS  # if nothing is taken yet, a new import loses nothing
    if taken and deaths < DEATHS:
        IMPORT.save(job, taken=replace(taken, deaths=deaths).as_json(), error=str(error) or type(error).__name__)
        broadcast_import(job)
        return False
    logger.error("import %s failed", job.pk, exc_info=error)
    _fail(job, _broken_off(job, taken, error))
    return True


def _broken_off(job: ImportJob, taken: ImportCheckpoint | None, error: Exception) -> str:
    if taken is None:
        return f"The import could not begin: {_said(error)}. Nothing was imported. Start it again."
    name = _name(job, taken)
    where = f"{DEATHS} times at the same place, soon behind row {taken.rows:,} of {name}. Nothing was imported."
    if isinstance(error, processes.Died):
        return (
            f"The process that reads the file {error.how}, {where} If the system's log says that memory ran out, import the file on "
            "a machine with more memory, or shorten the rows after that one. Otherwise import these rows as separate files, to "
            "find the bad row."
        )
    return f"The import broke off, {where} The error was: {_said(error)}. The server's log has the details."


def _name(job: ImportJob, taken: ImportCheckpoint) -> str:
    try:
        return _given(job).names[taken.file]
    except (_Refused, OSError):
        return job.file_name


def _said(error: Exception) -> str:
    return f"{type(error).__name__}, {error}".rstrip(". ")


def _carry(job: ImportJob) -> None:
    """Reads the file, and reads it again if it puts a prompt on both sides: the side is settled then."""
    _unless_cancelled(job)
    _gather(job)
    given = _given(job)
    settled: dict[int, Settled] = {}
    for _ in range(PASSES):
        taken = _left_by_an_earlier_worker(job, given) or _begin(job, given)
        loader = _filled(job, given, taken, settled)
        found = loader.contradictions(given.names) if job.keep_good or not job.rejected_count else {}
        if not found:
            return _conclude(job, loader, given)
        settled |= found
        _start_over(job, taken)
    raise RuntimeError(f"import {job.pk} puts prompts on both sides although the sides are settled")


def _gather(job: ImportJob) -> None:
    """Writes the file if nobody sent one."""
    due = jobs.Throttle(jobs.TELL_EVERY_S)

    def heard(rows: int) -> None:
        if due():
            IMPORT.save(job, rows_done=rows)
            broadcast.send_now(_group(job), _message(job))
            _unless_cancelled(job)

    try:
        generated_files.fill(job, heard)
    except Problem as problem:
        raise _Refused(" ".join([problem.message, *(problem.fields or {}).values()])) from problem


def _given(job: ImportJob) -> ImportSource:
    """The source of the import. Raises FileNotFoundError, and _Refused if it can no longer be read."""
    path = Path(job.file_path)
    path.stat()
    try:
        return inspection.given(path, job.file_name, job.format)
    except Invalid as problem:
        why = problem.fields.get("file", problem.message).rstrip(". ")
        raise _Refused(f"The import could not begin: {why}. Nothing was imported.") from problem


def _filled(job: ImportJob, given: ImportSource, taken: ImportCheckpoint, settled: dict[int, Settled]) -> Loader:
    """The loader with every row of the file in it."""
    version = DatasetVersion.every.select_related("dataset").get(pk=taken.version)
    known = version.dataset if version.dataset.ready else None
    target = ImportTarget(job.workspace_id, job.dataset_name, job.heldout_share, job.group_by)
    rule = replace(rule_of(job.format, known, target), settled=settled)
    reader = Reader(given.path, job.file_name, given.names, job.format, job.mapping, rule, taken)
    loader = Loader(version, taken)
    before = partial(earlier_splits.of_keys, known) if known else None  # otherwise no key has an earlier side
    with closing(_read(reader, before, given)) as ready:
        _take(job, taken, ready, given.names, loader)
    return loader


def _read(reader: Reader, before: Callable[[list[str]], Sides] | None, given: ImportSource) -> Pieces:
    """The batches to take. A small file of text is read in this process, which is done before another process would have started."""
    if given.packed or given.size > SMALL:
        return processes.ready(reader, before, alone=given.size <= SMALL)
    return reader.ready(before and (lambda keys: partial(before, keys)))


def _unless_cancelled(job: ImportJob, *, lock: bool = False) -> None:
    """Raises _Cancelled if the import was cancelled. With `lock`, nobody can cancel it until the transaction ends."""
    rows = ImportJob.objects.select_for_update() if lock else ImportJob.objects
    if rows.filter(pk=job.pk).values_list("cancel_asked", flat=True).get():
        raise _Cancelled


def _left_by_an_earlier_worker(job: ImportJob, given: ImportSource) -> ImportCheckpoint | None:
    """The committed part of this import. If the file or the dataset has changed since, there is none, and the import starts over."""
    taken = ImportCheckpoint.of(job.taken)
    if taken is None:
        return None
    dataset = Dataset.every.get(versions=taken.version)
    if taken.source == source(given) and taken.latest == _latest(dataset) and intact(taken):
        return taken
    _start_over(job, taken)
    return None


@transaction.atomic
def _start_over(job: ImportJob, taken: ImportCheckpoint) -> None:
    _discard(taken)
    IMPORT.save(job, taken={})


def _discard(taken: ImportCheckpoint) -> None:
    dataset = Dataset.every.get(versions=taken.version)
    discard(taken.version, shared=taken.latest != _latest(dataset))


@transaction.atomic
def _begin(job: ImportJob, given: ImportSource) -> ImportCheckpoint:
    dataset, _ = Dataset.every.get_or_create(workspace=job.workspace, name=job.dataset_name, defaults={"ready": False})
    version = begin(dataset, _lineage(job, given), job.pk)
    unmet = tuple(sorted(set(job.mapping.values())))
    taken = ImportCheckpoint(version.pk, source(given), _latest(dataset), unmet=unmet)
    _unless_cancelled(job, lock=True)  # from here on there are rows that the worker must remove if it is cancelled
    job.rejected, job.rejected_count, job.rows_done, job.bytes_done = [], 0, 0, 0
    job.bytes_total = given.size
    job.taken = taken.as_json()
    IMPORT.save(job, *PROGRESS, "rejected", "bytes_total")
    return taken


def _latest(dataset: Dataset) -> int | None:
    return dataset.versions.order_by("-number").values_list("id", flat=True).first()


def broadcast_import(job: ImportJob) -> None:
    broadcast.send(_group(job), _message(job))


def _group(job: ImportJob) -> str:
    return f"workspace.{job.workspace_id}"


def _message(job: ImportJob) -> dict[str, object]:
    return {"type": "import", **queries.import_progress(job)}


def _take(job: ImportJob, taken: ImportCheckpoint, batches: Pieces, names: tuple[str, ...], loader: Loader) -> None:
    """Stores every batch in its own transaction, together with how far the import is then."""
    due, unmet, unread = jobs.Throttle(jobs.TELL_EVERY_S), set(taken.unmet), Counter(taken.unread)
    for ready in batches:
        with transaction.atomic():
            refused = job.rejected_count
            _take_batch(job, ready, names, loader)
            place = ready.place
            job.rows_done += place.count
            job.bytes_done = min(place.bytes_done, job.bytes_total)
            unmet &= ready.unmet
            dropped_content.add_columns(unread, ready.unread)
            at = replace(taken, file=place.file, rows=place.read, bytes_before=place.bytes_before, deaths=0)
            at = replace(at, good=loader.good, stored=loader.stored, indexed=loader.indexed)
            job.taken = replace(at, unmet=tuple(sorted(unmet)), unread=dict(unread)).as_json()
            IMPORT.save(job, *PROGRESS, *(["rejected"] if job.rejected_count > refused else []))
        if due():
            broadcast.send_now(_group(job), _message(job))
            _unless_cancelled(job)


def _take_batch(job: ImportJob, ready: LoadBatch, names: tuple[str, ...], loader: Loader) -> None:
    several = len(names) > 1
    for found in ready.problems:
        problem = found if found.file or not several else replace(found, file=ready.place.name)
        _refuse(job, problem)
        if problem.doubts_all and job.keep_good:
            where = f"Line {problem.line}" + (f" of {problem.file}" if problem.file else "")
            raise _Refused(f"{where}, {problem.field}: {problem.short().reason}.")
    loader.storing = job.keep_good or not job.rejected_count
    for each in loader.take(ready):
        if each.same:
            continue  # it is there already
        where = f"line {each.first_line}" + (f" of {names[each.first_file]}" if each.first_file != each.file else "")
        reason = f"the key {each.key!r} is that of {where} already"
        _refuse(job, RowProblem(each.line, "key", reason, names[each.file] * several))


def _refuse(job: ImportJob, problem: RowProblem) -> None:
    job.rejected_count += 1
    if len(job.rejected) < KEPT_PROBLEMS:
        job.rejected.append(problem.told())


@transaction.atomic
def _conclude(job: ImportJob, loader: Loader, given: ImportSource) -> None:
    """Makes the whole version visible at once, or refuses the import. Raises _Refused, _Cancelled."""
    job.bytes_done = job.bytes_total
    job.rejected.sort(key=lambda problem: (problem.get("file", ""), problem["line"]))
    if job.rejected_count and not job.keep_good:
        lines = f"{with_noun(job.rejected_count, 'lines')} {'was' if job.rejected_count == 1 else 'were'}"
        job.counts = {"good": loader.good, "rejected": job.rejected_count}
        raise _Refused(f"{lines} refused, so nothing was imported. Correct the file, or import only its good lines.")
    if not loader.good:
        raise _Refused("No line of the file can be imported." if job.rejected_count else "The file holds no examples.")
    _unless_unmet(job)
    version, new = loader.finish()
    audit.asked_by(job)
    _unless_cancelled(
        job, lock=True
    )  # only now, because finishing a large version takes a while, and a person who cancels would wait
    Dataset.every.filter(pk=version.dataset_id, ready=False).update(
        ready=True, heldout_share=share_of(job.format, None, job.heldout_share), group_by=job.group_by
    )
    _finish(job, version, given, unchanged=not new)


def _unless_unmet(job: ImportJob) -> None:
    """Raises _Refused if the mapping names a column that no row had: what it was meant for would be missing everywhere."""
    taken = ImportCheckpoint.of(job.taken)
    unmet = [f"{column} for {field}" for field, column in job.mapping.items() if taken and column in taken.unmet]
    if unmet:
        named = f"The mapping names a column that no row has: {', '.join(unmet)}."
        raise _Refused(f"{named} Nothing was imported. Correct the mapping, and import the file again.")


@transaction.atomic
def _fail(job: ImportJob, error: str) -> None:
    _end_with_nothing(job, ImportJob.State.FAILED, error)
    audit.record(job.workspace, job.created_by, "import.failed", job, error=error)


def cancel(job: ImportJob) -> None:
    """Ends an import that has stored nothing, or that the caller is carrying out."""
    _end_with_nothing(job, ImportJob.State.CANCELLED, CANCELLED)


@transaction.atomic
def _end_with_nothing(job: ImportJob, state: ImportJob.State, error: str) -> None:
    """Ends the import without rows. Raises JobLost if it had ended before."""
    audit.asked_by(job)
    if taken := ImportCheckpoint.of(job.taken):
        _discard(taken)
    IMPORT.save(job, *OUTCOME, state=state, error=error, taken={}, finished_at=timezone.now())
    broadcast_import(job)
    by = job.created_by_id if state == ImportJob.State.CANCELLED else None
    facts = {"import": job.pk, "name": job.dataset_name, "error": error}
    announce(job.workspace_id, "import.failed", facts, by=by)


def _finish(job: ImportJob, version: DatasetVersion, given: ImportSource, *, unchanged: bool) -> None:
    job.version, job.unchanged = version, unchanged
    job.counts = {**version.counts, "rejected": job.rejected_count, **_repeated(job, version), **_leaked(version)}
    if job.format in TRACES:
        job.counts |= {f"{NOT_IMPORTED}{name}": count for name, count in queries.not_imported(version).items()}
    job.overlaps = leaks.of_version(version).json()
    job.unsaid = dropped_content.counts(version, given) | dropped_content.of_columns(ImportCheckpoint.of(job.taken))
    near_leaks.ask(near_leaks.VersionPair(version, version))
    IMPORT.save(job, *OUTCOME, state=ImportJob.State.FINISHED, taken={}, finished_at=timezone.now())
    audit.record(job.workspace, job.created_by, "import.finished", version, unchanged=unchanged)
    broadcast_import(job)
    facts = queries.version_facts(version)
    announce(job.workspace_id, "import.finished", {"import": job.pk, **facts, "unchanged": unchanged})


def _repeated(job: ImportJob, version: DatasetVersion) -> dict[str, int]:
    """The number of rows whose key and content were there already. They count once, and the import reports them."""
    repeated = job.rows_done - job.rejected_count - version.counts.get("examples", 0)
    return {"repeated": repeated} if repeated > 0 else {}


def _leaked(version: DatasetVersion) -> dict[str, int]:
    """The number of prompts and groups on both sides, which an older release may have left."""
    return {"leaked": count} if (count := leaks.leaks_within(version).count) else {}


def _lineage(job: ImportJob, given: ImportSource) -> dict[str, object]:
    """The origin of the version: the digest of the file, and of several files the names of those that were read."""
    if job.origin:
        return {**job.origin, "import": job.pk}
    lineage: dict[str, object] = {"from": "import", "import": job.pk, "file": job.file_name, "format": job.format}
    if given.path.is_file():
        lineage["sha256"] = digest_of(given.path)
    return lineage if given.single else lineage | {"files": list(given.names)}
