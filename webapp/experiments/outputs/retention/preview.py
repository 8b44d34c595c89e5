"""The checkpoints that a rule would delete now, counted before the rule is switched on."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from ...models import Run
from . import candidates

MOST = 2000
"""Runs at which one preview looks."""
AT_ONCE = 100


@dataclass
class RetentionPreview:
    """`kept`: {reason: checkpoints}. Not `whole`: there are more old runs than were counted."""

    days: int
    runs: int = 0
    checkpoints: int = 0
    bytes: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    whole: bool = True

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """The number of checkpoints that stay for each reason, in words."""
        told = candidates.words()
        return [(self.kept[name], told[name]) for name in told if self.kept[name]]


def preview(workspace_id: int, days: int) -> RetentionPreview:
    found = RetentionPreview(days)
    runs = list(candidates.old_runs(workspace_id, ended_before(days))[: MOST + 1])
    found.whole = len(runs) <= MOST
    for place in range(0, min(len(runs), MOST), AT_ONCE):
        _count(found, runs[place : place + AT_ONCE])
    return found


def _count(found: RetentionPreview, runs: list[Run]) -> None:
    looked = candidates.find(runs)
    gone = [each.row for each in looked if not each.why]
    found.runs += len({row.run_id for row in gone})
    found.checkpoints += len(gone)
    found.bytes += sum(row.bytes for row in gone)
    found.kept.update(each.why for each in looked if each.why)


def ended_before(days: int) -> datetime:
    return timezone.now() - timedelta(days=days)
