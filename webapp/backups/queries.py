"""What the administrator's page shows."""

from dataclasses import dataclass

from .models import Backup, BackupDrill, BackupPlan

SHOWN = 50


@dataclass(frozen=True)
class Overview:
    """`good`: the newest backup that is whole and still there."""

    under_way: Backup | None
    good: Backup | None
    listed: list[Backup]
    drill: BackupDrill | None
    passed: BackupDrill | None
    plan: BackupPlan


def overview() -> Overview:
    listed = list(Backup.objects.select_related("created_by")[:SHOWN])
    whole = Backup.objects.filter(state=Backup.State.FINISHED, removed_at=None)
    drills = BackupDrill.objects.all()
    return Overview(
        next((each for each in listed if each.open), None),
        whole.first(),
        [each for each in listed if not each.open],
        drills.first(),
        drills.filter(passed=True).first(),
        plan(),
    )


def plan() -> BackupPlan:
    """What is set, or what holds until somebody sets something."""
    return BackupPlan.objects.filter(pk=1).first() or BackupPlan(pk=1)
