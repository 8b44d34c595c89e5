"""All writes to datasets: imports as jobs, freezing, describing."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Any, NoReturn, Protocol
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from trainer.contracts import Example
from webapp.accounts import quotas
from webapp.accounts.models import Membership
from webapp.core import audit, broadcast, locks
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue
from webapp.webhooks.services import announce

from ..files.records import RowProblem
from . import curation, queries
from .columns.filters import Filters, query
from .curation import runner
from .formats.convert import Mapping
from .formats.importers import REGISTRY
from .ingest import import_job, inspection, split_rule
from .ingest.earlier_splits import Settler, Target
from .ingest.inspection import Given
from .models import CurationJob, Dataset, DatasetVersion, ImportJob, SavedView, VersionTag
from .versions import staging, writer

MAX_UPLOAD_BYTES = 4_000_000_000
CHUNK = 1 << 20
TAG = re.compile(r"[\w.-]{1,40}")
GATHERED = "touchstone"  # the format of what a worker gathers
BATCH = 2_000  # records read and staged at a time


class SupportsRead(Protocol):
    def read(self, size: int, /) -> bytes: ...


def store_upload(file_name: str, chunks: SupportsRead) -> Path:
    """Keeps an uploaded file under var/uploads until its import is over. Raises Invalid at `file` when it is too large or
    the disk is full; then nothing of it is kept."""
    path = Path(settings.VAR) / "uploads" / uuid4().hex / safe_name(file_name)
    try:
        path.parent.mkdir(parents=True)
        _write(path, chunks)
    except BaseException as error:
        discard_upload(path)
        if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
            reason = "cannot be stored: the server's disk is full. Free some space, then send it again"
            raise Invalid("The server's disk is full.", {"file": reason}) from error
        raise
    return path


@contextmanager
def uploaded(file_name: str, chunks: SupportsRead) -> Iterator[Path]:
    """`store_upload`, for a block that starts the import: where it does not, whyever, nothing of the file is kept."""
    path = store_upload(file_name, chunks)
    try:
        yield path
    except BaseException:
        discard_upload(path)
        raise


def _write(path: Path, chunks: SupportsRead) -> None:
    size = 0
    with path.open("wb") as file:
        while chunk := chunks.read(CHUNK):
            size += len(chunk)
            if size > MAX_UPLOAD_BYTES:
                raise Invalid("The file is too large.", {"file": f"is larger than {MAX_UPLOAD_BYTES // 10**9} GB"})
            file.write(chunk)


def safe_name(name: str) -> str:
    """The last part of the name, which readers need for its ending; never a path out of its folder."""
    cleaned = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in Path(name).name)
    return cleaned.lstrip(".")[-100:].encode("ascii", "replace").decode().replace("?", "_") or "upload"


def discard_upload(path: Path) -> None:
    """Removes an upload and its folder; a file elsewhere, such as one named on the command line, stays."""
    if path.parent.parent == Path(settings.VAR) / "uploads":
        rmtree(path.parent, ignore_errors=True)


def start_import(
    membership: Membership,
    path: Path,
    *,
    name: str,
    file_name: str = "",
    format: str = inspection.AUTO,
    mapping: Mapping | None = None,
    keep_good: bool = False,
    heldout_share: float | None = None,
    group_by: str = "",
    queue: bool = True,
) -> ImportJob:
    """An import of the file at `path` into dataset `name`, queued for a worker (`queue=False`: the caller runs it).

    `group_by`: the field whose value names the group that stands on one side of the split, see `split_rule`; a dataset
    that is there keeps its own. Raises Invalid at `name`, `format`, `mapping`, `heldout_share`, `group_by` or `file`,
    OverQuota at `file`.
    """
    given = _given(path, file_name or path.name, format)
    if heldout_share is not None and not 0 <= heldout_share <= 1:
        raise Invalid("The held-out share is out of bounds.", {"heldout_share": "must be from 0 to 1"})
    with transaction.atomic():
        _room(membership.workspace_id, given.size)
        _open(membership.workspace_id, import_job.dataset_name(name))
        job = ImportJob.objects.create(
            workspace=membership.workspace,
            dataset_name=import_job.dataset_name(name),
            file_name=(file_name or path.name)[:255],
            file_path=str(path.resolve()),
            format=given.format,
            mapping=_mapping(given.format, mapping or {}),
            heldout_share=heldout_share,
            group_by=group_field(membership.workspace_id, import_job.dataset_name(name), group_by),
            keep_good=keep_good,
            bytes_total=given.size,
            created_by=membership.user,
        )
        audit.record(membership, membership.user, "import.started", job, dataset=job.dataset_name, file=job.file_name)
        if queue:
            enqueue("workers.imports.run", job.pk)
    return job


@transaction.atomic
def start_gathering(membership: Membership, origin: dict[str, Any], *, name: str, file_name: str) -> ImportJob:
    """An import of what a worker gathers from `origin`, see `generated_files`, into dataset `name`.

    Raises Invalid at `name`, OverQuota at `file`.
    """
    name = import_job.dataset_name(name)
    _room(membership.workspace_id, 0)  # how much is gathered is not known yet
    _open(membership.workspace_id, name)
    path = Path(settings.VAR) / "uploads" / uuid4().hex / safe_name(file_name)
    job = ImportJob.objects.create(
        workspace=membership.workspace,
        dataset_name=name,
        file_name=file_name[:255],
        file_path=str(path.resolve()),
        format=GATHERED,
        group_by=group_field(membership.workspace_id, name, ""),
        origin=origin,
        created_by=membership.user,
    )
    audit.record(membership, membership.user, "import.started", job, dataset=name, **origin)
    enqueue("workers.imports.run", job.pk)
    return job


def _room(workspace_id: int, size: int) -> None:
    """Raises OverQuota where the workspace may have no further import, or none of so many bytes. Holds until the commit."""
    limits = quotas.of(workspace_id)
    if limits.imports_at_once is None and limits.import_bytes is None:
        return
    quotas.hold(workspace_id)
    used = queries.import_use(workspace_id)
    if limits.imports_at_once is not None and used.waiting >= limits.imports_at_once:
        reason = f"{used.waiting} of {limits.imports_at_once} imports at once are under way; wait for one to end"
        raise quotas.OverQuota("This workspace has no room for another import.", {"file": reason})
    if limits.import_bytes is not None and used.bytes + size > limits.import_bytes:
        left = max(limits.import_bytes - used.bytes, 0)
        reason = f"has {size:,} bytes; of {limits.import_bytes:,} for imported files {left:,} are left"
        raise quotas.OverQuota("This workspace has no room for this file.", {"file": reason})


def _given(path: Path, file_name: str, format: str) -> Given:
    given = inspection.given(path, file_name, format)
    if given.size == 0:
        raise Invalid("The file is empty.", {"file": "holds no bytes"})
    return given


def _open(workspace_id: int, name: str) -> None:
    """Locks the dataset, so that it is not renamed or deleted before the import is there to be seen."""
    known = Dataset.every.select_for_update(no_key=True).filter(workspace_id=workspace_id, name=name).first()
    if known and known.deleting_at:
        raise Invalid("This dataset is being deleted.", {"name": "is that of a dataset that is being deleted"})
    if known and known.archived_at:
        raise Invalid("This dataset is archived.", {"name": "is that of an archived dataset; restore it first"})


def target(workspace_id: int, name: str, heldout_share: float | None, group_by: str) -> Target:
    """What an import would be for, before it is asked for: the name may still be missing. Raises Invalid at `group_by`."""
    name = " ".join(name.replace("\0", " ").split())
    return Target(workspace_id, name, heldout_share, group_field(workspace_id, name, group_by))


def group_field(workspace_id: int, name: str, group_by: str) -> str:
    """The field to group by, checked. Raises Invalid at `group_by`."""
    try:
        field = split_rule.group_field(group_by)
    except ValueError as error:
        raise Invalid("The field to group by is not known.", {"group_by": str(error)}) from error
    known = Dataset.objects.filter(workspace_id=workspace_id, name=name).first()
    if known and field and field != known.group_by:
        kept = f"{name} keeps examples of one {known.group_by or 'prompt'} together, and their sides are drawn already"
        raise Invalid("The groups of a dataset never change.", {"group_by": kept})
    return known.group_by if known else field


def _mapping(importer: str, mapping: Mapping) -> Mapping:
    from .formats.table import SYNONYMS

    if mapping and not REGISTRY[importer].mappable:
        raise Invalid("This format has no column mapping.", {"mapping": f"{importer} knows its columns"})
    for field, column in mapping.items():
        if field not in SYNONYMS:
            raise Invalid("The mapping names an unknown field.", {f"mapping.{field}": f"known: {', '.join(SYNONYMS)}"})
        if not isinstance(column, str):
            raise Invalid("The mapping must name columns.", {f"mapping.{field}": "must be a column's name"})
    return {field: column for field, column in mapping.items() if column}


def run_import(job_id: int) -> None:
    """Carries out a queued import, or one whose worker died; returns at once if another worker has it."""
    with import_job.IMPORT.claimed(job_id, error="") as job:
        if job is None:
            return
        import_job.run(job)
        if job.state == ImportJob.State.FINISHED or job.rejected_count or job.error:
            _discard_file_of(job)


def cancel_import(membership: Membership, job: ImportJob) -> ImportJob:
    """An import that has stored nothing ends at once, another as soon as its worker hears of it; nothing of it stays.

    Asking twice changes nothing; Conflict where the import was over before it was asked.
    """
    State = ImportJob.State
    with transaction.atomic():
        job = ImportJob.objects.select_for_update(of=("self",)).select_related("workspace", "version").get(pk=job.pk)
        if job.state in (State.FINISHED, State.FAILED):
            raise Conflict(f"The import has {job.state} already.", code="no_such_move")
        if job.state == State.CANCELLED or job.cancel_asked:
            return job
        job.cancel_asked = True
        job.save(update_fields=["cancel_asked"])
        if not job.taken:  # queued, or waiting until another import into its dataset is over
            import_job.cancel(job)
        else:
            import_job.tell(job)
            enqueue("workers.imports.run", job.pk)  # its worker may have died: then another one tidies up
        audit.record(membership, membership.user, "import.cancelled", job, dataset=job.dataset_name)
    if job.state == State.CANCELLED:
        _discard_file_of(job)
    return job


def _discard_file_of(job: ImportJob) -> None:
    with locks.shared(locks.Work.BACKUP_FILES, 0):  # a backup may have seen the import under way, and not yet its file
        discard_upload(Path(job.file_path))


def create_dataset(membership: Membership, name: str, description: str = "", licence: str = "") -> Dataset:
    """An empty dataset, for versions that come from elsewhere than a file. Raises Invalid at `name` if it is taken."""
    name = import_job.dataset_name(name)
    try:
        with transaction.atomic():
            row = Dataset.objects.create(
                workspace=membership.workspace, name=name, description=description, licence=licence
            )
            audit.record(membership, membership.user, "dataset.created", row, name=name)
    except IntegrityError as error:
        raise Invalid("This dataset exists.", {"name": "another dataset of this workspace has this name"}) from error
    return row


def new_version(
    membership: Membership,
    dataset: Dataset,
    records: Iterable[Example],
    base: DatasetVersion | None,
    lineage: dict[str, Any],
    as_given: bool = False,
) -> DatasetVersion:
    """A new draft version of the dataset. `records` is read once and never held in memory as a whole.

    Without `base` it holds exactly the records, in their order. With `base` it holds the examples of that version, each
    record in the place of the one with its key, and records with new keys behind them. A key keeps the side of the
    split that it has in any earlier version, and so do prompts and groups; with `as_given` each record keeps the side
    that it says, or none. `lineage` says where it comes from: {"from": "annotation", ...}; number and id of `base` are
    added. Where a version holds exactly this content already, that one is returned.
    Raises Invalid at `records.N.field`, or at `base` when it is a version of another dataset.
    """
    if base and base.dataset_id != dataset.pk:
        raise Invalid("The base is a version of another dataset.", {"base": f"must be a version of {dataset}"})
    if base:
        lineage = {**lineage, "base": base.number, "base_id": base.pk}

    def fill(version_id: int) -> None:
        if base:
            staging.move_over(dataset.pk, version_id, base.pk)
        else:
            staging.move(dataset.pk, version_id)

    with writer.alone(dataset.workspace_id, dataset.name), staging.table():
        _stage(dataset, records, as_given)
        return made(membership, *writer.create(dataset, lineage, fill))


def _stage(dataset: Dataset, records: Iterable[Example], as_given: bool) -> None:
    settler = None if as_given else Settler(dataset)
    numbered = enumerate(records)
    while batch := list(islice(numbered, BATCH)):
        rows = [_sound(row) for row in settler.settle(batch)] if settler else batch
        staging.copy(list(_prepared(rows)))  # in full before COPY: an error inside it would break the transaction
    for line, key, first in staging.repeated_keys():
        _refuse(line, "key", f"the key {key!r} is that of record {first} already")


def _prepared(rows: list[tuple[int, Example]]) -> Iterator[tuple[Any, ...]]:
    for line, example in rows:
        try:
            yield staging.prepare(line, example)
        except ValueError as error:
            _refuse(line, "", f"holds a value that cannot be stored: {error}")


def _sound(row: tuple[int, Example] | RowProblem) -> tuple[int, Example]:
    if isinstance(row, RowProblem):
        _refuse(row.line, row.field, row.reason)
    return row


def _refuse(line: int, field: str, reason: str) -> NoReturn:
    raise Invalid("A record cannot be stored.", {".".join(filter(None, ("records", str(line), field))): reason})


@transaction.atomic
def made(membership: Membership, version: DatasetVersion, new: bool) -> DatasetVersion:
    """Tells of a version that was just made; of one that was there already there is nothing to tell."""
    if new:
        audit.record(membership, membership.user, "version.made", version, number=version.number, **_origin(version))
        message: dict[str, object] = {"type": "version", "id": version.pk, "state": version.state}
        broadcast.send(f"workspace.{membership.workspace_id}", message)
    return version


def _origin(version: DatasetVersion) -> dict[str, Any]:
    return {key: version.lineage[key] for key in ("from", "base") if key in version.lineage}


def hold(version: DatasetVersion) -> None:
    """Keeps the version from being deleted until the transaction ends: for whoever makes something that refers to it. It
    does not keep others from doing the same. Raises Invalid at `dataset` where it is gone by now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM datasets_datasetversion WHERE id = %s FOR KEY SHARE", [version.pk])
        if cursor.fetchone() is None:
            raise Invalid("This dataset is gone.", {"dataset": "was deleted meanwhile"})


@transaction.atomic
def freeze(membership: Membership, version: DatasetVersion) -> DatasetVersion:
    """Promises that this version is kept as it is. Freezing a frozen version changes nothing. Holds it, see `hold`."""
    hold(version)
    changed = DatasetVersion.objects.filter(pk=version.pk, state=DatasetVersion.State.DRAFT).update(
        state=DatasetVersion.State.FROZEN, frozen_at=timezone.now()
    )
    if changed:
        audit.record(membership, membership.user, "version.frozen", version, digest=version.digest)
        message: dict[str, object] = {"type": "version", "id": version.pk, "state": "frozen"}
        broadcast.send(f"workspace.{membership.workspace_id}", message)
        announce(membership.workspace_id, "version.frozen", queries.version_facts(version))
    version.refresh_from_db(fields=["state", "frozen_at"])
    return version


@transaction.atomic
def describe(membership: Membership, dataset: Dataset, *, description: str, licence: str) -> Dataset:
    """Sets what people read about the dataset. Raises Invalid at `licence` or `description`."""
    if len(licence) > 120:
        raise Invalid("The licence is too long.", {"licence": "must have at most 120 characters"})
    if len(description) > 20_000:
        raise Invalid("The description is too long.", {"description": "must have at most 20,000 characters"})
    dataset.description, dataset.licence = description, licence
    dataset.save(update_fields=["description", "licence"])
    audit.record(membership, membership.user, "dataset.described", dataset)
    return dataset


@transaction.atomic
def tag(membership: Membership, version: DatasetVersion, name: str) -> VersionTag:
    """Calls the version `name`; a tag of that name on another version of the dataset moves here. Raises Invalid."""
    if not TAG.fullmatch(name):
        raise Invalid(
            "The tag is not usable.", {"name": "must be 1 to 40 letters, digits, dots, dashes or underscores"}
        )
    made, _ = VersionTag.objects.update_or_create(
        dataset_id=version.dataset_id, name=name, defaults={"version": version}
    )
    audit.record(membership, membership.user, "version.tagged", version, tag=name, number=version.number)
    return made


@transaction.atomic
def untag(membership: Membership, version: DatasetVersion, name: str) -> None:
    """Takes the tag away; one that is not there stays away."""
    gone, _ = VersionTag.objects.filter(version=version, name=name).delete()
    if gone:
        audit.record(membership, membership.user, "version.untagged", version, tag=name, number=version.number)


@transaction.atomic
def save_view(membership: Membership, dataset: Dataset, name: str, filters: Filters) -> SavedView:
    """Keeps the filters under a name, in place of what it stood for before. Raises Invalid at `name` or `filters`."""
    name = " ".join(name.split())
    if not name or len(name) > 80 or "\0" in name:
        raise Invalid("The view needs a name.", {"name": "must have 1 to 80 characters"})
    if not filters.narrow:
        raise Invalid("There is nothing to save: no filter is set.", {"filters": "narrow nothing"})
    view, _ = SavedView.objects.update_or_create(
        dataset=dataset,
        name=name,
        defaults={"workspace_id": dataset.workspace_id, "query": query(filters), "created_by": membership.user},
    )
    audit.record(membership, membership.user, "view.saved", view, name=name)
    return view


@transaction.atomic
def delete_view(membership: Membership, view: SavedView) -> None:
    audit.record(membership, membership.user, "view.deleted", view, name=view.name, query=view.query)
    view.delete()


def derive(
    membership: Membership,
    version: DatasetVersion,
    filters: Filters,
    *,
    keep: bool = True,
    job: CurationJob | None = None,
    note: str = "",
) -> CurationJob:
    """A queued job that makes the next version: what the filters leave (`keep`), or everything else, or the version
    without what `job` found. Raises Invalid when neither filters nor job say what to remove."""
    if job is None and not filters.narrow:
        raise Invalid("No filter is set, so nothing would be removed.", {"filters": "narrow nothing"})
    if job and job.state != CurationJob.State.FINISHED:
        raise Conflict("That job has not finished yet; wait until it has found everything.")
    params = {"filters": {} if job else query(filters), "keep": keep, "job": job and job.pk, "note": note[:500]}
    return _queued(membership, version, CurationJob.Kind.DERIVE, params)


def curate(membership: Membership, version: DatasetVersion, kind: str, params: dict[str, Any]) -> CurationJob:
    """A queued job that looks for something in the version and changes nothing. Raises Invalid at `kind`, `params`."""
    if kind not in curation.REGISTRY:
        raise Invalid("There is no such check.", {"kind": f"must be one of {', '.join(curation.REGISTRY)}"})
    return _queued(membership, version, kind, curation.REGISTRY[kind].params(params))


@transaction.atomic
def _queued(membership: Membership, version: DatasetVersion, kind: str, params: dict[str, Any]) -> CurationJob:
    total = version.counts.get("examples", 0)
    job = CurationJob.objects.create(version=version, kind=kind, params=params, total=total, created_by=membership.user)
    audit.record(membership, membership.user, "curation.started", job, kind=kind, version=version.number)
    enqueue("workers.curation.run", job.pk)
    return job


run_curation = runner.run
