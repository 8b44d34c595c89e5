"""Reads of the administrators' page of backups."""

from dataclasses import dataclass
from datetime import datetime

from .models import Backup, BackupDrill, BackupPlan

SHOWN = 50


@dataclass(frozen=True)
class Overview:
    """`good`: the newest backup that is whole and still exists; `drill`: the last one with a result."""

    under_way: Backup | None
    good: Backup | None
    listed: list[Backup]
    trying: BackupDrill | None
    drill: BackupDrill | None
    passed: BackupDrill | None
    plan: BackupPlan


def overview() -> Overview:
    listed = list(Backup.objects.select_related("created_by")[:SHOWN])
    whole = Backup.objects.filter(state=Backup.State.FINISHED, removed_at=None)
    drills = BackupDrill.objects.filter(passed__isnull=False)
    return Overview(
        next((each for each in listed if each.open), None),
        whole.first(),
        [each for each in listed if not each.open],
        BackupDrill.objects.filter(open=True).first(),
        drills.first(),
        drills.filter(passed=True).first(),
        plan(),
    )


def plan() -> BackupPlan:
    """The plan that is set, or the default."""
    return BackupPlan.objects.filter(pk=1).first() or BackupPlan(pk=1)


@dataclass(frozen=True)
class LastBackup:
    """The time of the last success (None: never), and whether the last finished one failed."""

    good_at: datetime | None
    failed: bool


def outcomes() -> dict[str, LastBackup]:
    """The last outcome of backups and of drills, if there has been one."""
    whole = Backup.objects.filter(state=Backup.State.FINISHED).values_list("finished_at", flat=True).first()
    ended = Backup.objects.filter(state__in=(Backup.State.FINISHED, Backup.State.FAILED))
    last = ended.values_list("state", flat=True).first()
    passed = BackupDrill.objects.filter(passed=True).values_list("finished_at", flat=True).first()
    drilled = BackupDrill.objects.filter(passed__isnull=False).values_list("passed", flat=True).first()
    found = {}
    if last is not None:
        found["backup"] = LastBackup(whole, last == Backup.State.FAILED)
    if drilled is not None:
        found["drill"] = LastBackup(passed, not drilled)
    return found
