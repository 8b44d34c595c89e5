"""The rule is changed, runs are marked, and checkpoints are deleted: first in the database, then on the disk or in the artifact store."""

import logging
import shutil
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.database import locks
from webapp.core.problems import Invalid
from webapp.core.storage import artifact_store
from webapp.core.storage.artifact_store import StoreAway

from ...models import OVER, Artifact, Run
from .. import artifacts
from . import candidates
from .models import CheckpointRule
from .preview import ended_before

logger = logging.getLogger(__name__)
LEAST, MOST = 1, 3650
PIECE = 50
"""Runs at which one piece of a round looks, and checkpoints whose files one piece deletes."""
AGAIN = timedelta(hours=6)
"""The time between the beginnings of two rounds."""


def rule(membership: Membership) -> CheckpointRule:
    """The rule of the workspace, or one that is off and not stored yet."""
    found = CheckpointRule.objects.filter(workspace_id=membership.workspace_id).first()
    return found or CheckpointRule(workspace=membership.workspace)


@transaction.atomic
def change(membership: Membership, on: bool, days: int) -> CheckpointRule:
    """Switches the rule on or off. Once it is off, nothing more is deleted. Raises Invalid at `days`."""
    if not LEAST <= days <= MOST:
        raise Invalid("The rule cannot be saved like this.", {"days": f"must be from {LEAST} to {MOST:,}"})
    CheckpointRule.objects.get_or_create(workspace=membership.workspace)
    row = CheckpointRule.objects.select_for_update().get(workspace=membership.workspace)
    if (row.on, row.days) != (on, days):
        row.on, row.days, row.after, row.next_at = on, days, 0, timezone.now()
        row.save(update_fields=["on", "days", "after", "next_at"])
        audit.record(membership, membership.user, "checkpoints.rule", membership.workspace, on=on, days=days)
    return row


@transaction.atomic
def mark(membership: Membership, run: Run, keep: bool) -> None:
    """Marks a run so that no rule deletes its checkpoints, or takes the mark away."""
    Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if Run.objects.filter(pk=run.pk).exclude(keep_checkpoints=keep).update(keep_checkpoints=keep):
        audit.record(membership, membership.user, "run.keep_checkpoints", run, keep=keep)
    run.keep_checkpoints = keep


def work() -> None:
    """One round of upkeep: deletes files that are due, then looks at one piece of the runs of each rule that is due."""
    for pk in Artifact.objects.filter(erase_due=True).values_list("pk", flat=True)[:PIECE]:
        _erase(pk)
    for row in CheckpointRule.objects.filter(on=True, next_at__lte=timezone.now()).order_by("next_at"):
        with locks.exclusive(locks.Work.CHECKPOINTS, row.pk) as ours:
            if ours:
                _piece(row)


def _piece(row: CheckpointRule) -> None:
    ids = list(
        candidates.old_runs(row.workspace_id, ended_before(row.days), row.after).values_list("pk", flat=True)[:PIECE]
    )
    for run_id in ids:
        try:
            delete(row, run_id)
        except Exception:  # one run must not keep the others of this rule, and other rules, waiting
            logger.exception("the checkpoints of run %s could not be looked at; the next round tries again", run_id)
    follows = {"after": ids[-1]} if len(ids) == PIECE else {"after": 0, "next_at": timezone.now() + AGAIN}
    CheckpointRule.objects.filter(pk=row.pk, days=row.days, after=row.after).update(**follows)


@transaction.atomic
def delete(row: CheckpointRule, run_id: int) -> int:
    """Deletes the checkpoints of a run that nothing needs; returns their number. A row that needs one takes the lock of the run first, or is
    seen here under it. The files go in the next round."""
    if not CheckpointRule.objects.select_for_update(no_key=True).filter(pk=row.pk, on=True, days=row.days).exists():
        return 0
    run = Run.objects.select_for_update(no_key=True).filter(pk=run_id, state__in=OVER).first()
    if run is None or run.ended_at is None or run.ended_at >= ended_before(row.days):
        return 0
    gone = [each.row for each in candidates.find([run]) if not each.why]
    Artifact.objects.filter(pk__in=[each.pk for each in gone]).update(
        removed_at=timezone.now(), erase_due=True, files=[]
    )
    for each in gone:
        detail = {"run": run_id, "step": each.step, "bytes": each.bytes, "after_days": row.days}
        audit.record(row.workspace, None, "checkpoint.deleted", each, **detail)
    size = sum(each.bytes for each in gone)
    if gone:
        CheckpointRule.objects.filter(pk=row.pk).update(
            deleted=F("deleted") + len(gone), deleted_bytes=F("deleted_bytes") + size
        )
    return len(gone)


@transaction.atomic
def _erase(pk: int) -> None:
    """Deletes the files of a checkpoint that is deleted already. If the store or the disk does not answer, the next round tries again."""
    row = Artifact.objects.select_for_update(skip_locked=True).filter(pk=pk, erase_due=True).first()
    if row is None:
        return
    try:
        with locks.shared(locks.Work.BACKUP_FILES, 0):  # a backup may have seen the row, and not yet its files
            _erase_folder(row)
            if artifact_store.is_configured():
                artifact_store.remove(artifacts.place(row))
    except (OSError, StoreAway):
        logger.warning("cannot delete the files of checkpoint %s of run %s yet", row.path, row.run_id, exc_info=True)
        return
    Artifact.objects.filter(pk=pk).update(erase_due=False)


def _erase_folder(row: Artifact) -> None:
    """The folder gets another name first, so that nobody copies half of it."""
    folder = artifacts.folder(row.run_id) / row.path
    waste = folder.with_name(f".deleted-{folder.name}")
    if folder.exists():
        shutil.rmtree(waste, ignore_errors=True)
        folder.rename(waste)
    if waste.exists():
        shutil.rmtree(waste)
