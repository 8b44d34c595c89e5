"""Starts, carries out and cancels imports, which are jobs."""

from pathlib import Path
from typing import Any

from django.db import transaction

from webapp.accounts.administration import quotas
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.database import locks
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue
from webapp.webhooks.services import announce

from .. import queries
from ..formats.convert import Mapping
from ..models import Dataset, ImportJob
from ..versions.services import dataset_name
from . import import_job, inspection, uploads
from .inspection import ImportSource
from .target import group_field

GATHERED = "touchstone"  # the format of files that a worker writes


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
    """Makes an import of the file at `path` into dataset `name`, and queues it for a worker (`queue=False`: the caller runs it).

    Without a `mapping`, each row is read by the columns that it and the first rows of its file have, as in the preview. `group_by`: the
    field whose value names the group that stays on one side of the split, see `split_rule`; an existing dataset keeps its own. Raises Invalid at `name`, `format`, `mapping`,
    `heldout_share`, `group_by` or `file`, OverQuota at `file`.
    """
    mapping = {field: column for field, column in (mapping or {}).items() if column}
    given = _given(path, file_name or path.name, format, mapping)
    if heldout_share is not None and not 0 <= heldout_share <= 1:
        raise Invalid("The held-out share is too small or too large.", {"heldout_share": "must be from 0 to 1"})
    with transaction.atomic():
        _room(membership.workspace_id, given.size)
        _open(membership.workspace_id, dataset_name(name))
        job = ImportJob.objects.create(
            workspace=membership.workspace,
            dataset_name=dataset_name(name),
            file_name=(file_name or path.name)[:255],
            file_path=str(path.resolve()),
            format=given.format,
            mapping=mapping,
            heldout_share=heldout_share,
            group_by=group_field(membership.workspace_id, dataset_name(name), group_by),
            keep_good=keep_good,
            bytes_total=given.size,
            created_by=membership.user,
        )
        _started(membership, job, file=job.file_name)
        if queue:
            enqueue("workers.imports.run", job.pk)
    return job


@transaction.atomic
def start_gathering(membership: Membership, origin: dict[str, Any], *, name: str, file_name: str) -> ImportJob:
    """Makes an import of rows that a worker gathers from `origin` into dataset `name`, see `generated_files`.

    Raises Invalid at `name`, OverQuota at `file`.
    """
    name = dataset_name(name)
    _room(membership.workspace_id, 0)  # the size is not known yet
    _open(membership.workspace_id, name)
    path = uploads.new_path(file_name)
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
    _started(membership, job, **origin)
    enqueue("workers.imports.run", job.pk)
    return job


def _started(membership: Membership, job: ImportJob, **detail: Any) -> None:
    """Writes the start of the job to the audit log and announces it, in the transaction that makes the job."""
    audit.record(membership, membership.user, "import.started", job, dataset=job.dataset_name, **detail)
    facts = {"import": job.pk, "name": job.dataset_name}
    announce(job.workspace_id, "import.started", facts, by=membership.user_id)


def _room(workspace_id: int, size: int) -> None:
    """Raises OverQuota if the workspace may have no further import, or none with this many bytes. The check holds until the commit."""
    limits = quotas.limits_of(workspace_id)
    if limits.imports_at_once is None and limits.import_bytes is None:
        return
    quotas.lock_limits(workspace_id)
    used = queries.import_use(workspace_id)
    if limits.imports_at_once is not None and used.waiting >= limits.imports_at_once:
        reason = f"{used.waiting} of {limits.imports_at_once} imports at once are under way; wait for one to end"
        raise quotas.OverQuota("This workspace cannot start another import now.", {"file": reason})
    if limits.import_bytes is not None and used.bytes + size > limits.import_bytes:
        left = max(limits.import_bytes - used.bytes, 0)
        reason = f"has {size:,} bytes; of {limits.import_bytes:,} for imported files {left:,} are left"
        raise quotas.OverQuota("This workspace has no space left for this file.", {"file": reason})


def _given(path: Path, file_name: str, format: str, mapping: Mapping) -> ImportSource:
    given = inspection.given(path, file_name, format, columns=bool(mapping))
    inspection.check_mapping(mapping, given.format, given.columns, complete=given.all_columns)
    if given.size == 0:
        raise Invalid("The file is empty.", {"file": "holds no bytes"})
    return given


def _open(workspace_id: int, name: str) -> None:
    """Locks the dataset, so that it is not renamed or deleted before the import is visible."""
    known = Dataset.every.select_for_update(no_key=True).filter(workspace_id=workspace_id, name=name).first()
    if known and known.deleting_at:
        raise Invalid("This dataset is being deleted.", {"name": "belongs to a dataset that is being deleted"})
    if known and known.archived_at:
        raise Invalid(
            "This dataset is archived.", {"name": "is the name of an archived dataset; restore that dataset first"}
        )


def run_import(job_id: int) -> None:
    """Carries out a queued import, or one whose worker died. Returns at once if another worker has it."""
    with import_job.IMPORT.claimed(job_id, error="") as job:
        if job is None:
            return
        import_job.run(job)
        if job.state == ImportJob.State.FINISHED or job.rejected_count or job.error:
            _discard_file_of(job)


def cancel_import(membership: Membership, job: ImportJob) -> ImportJob:
    """Cancels an import. If it has stored nothing, it ends at once; otherwise it ends when its worker notices. None of its rows stay.

    A second call changes nothing. Raises Conflict if the import was over before.
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
            import_job.broadcast_import(job)
            enqueue("workers.imports.run", job.pk)  # its worker may have died; then another one tidies up
        audit.record(membership, membership.user, "import.cancelled", job, dataset=job.dataset_name)
    if job.state == State.CANCELLED:
        _discard_file_of(job)
    return job


def _discard_file_of(job: ImportJob) -> None:
    with locks.shared(
        locks.Work.BACKUP_FILES, 0
    ):  # a backup may have read the row of this import, and not yet its file
        uploads.discard_upload(Path(job.file_path))
