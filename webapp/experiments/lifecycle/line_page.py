"""The whole line, for a page and the API of one workspace."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import prefetch_related_objects
from django.utils import timezone

from webapp.core.priorities import Priority
from webapp.weights.models import WeightsJob

from ..models import Run
from . import claimants, line_words
from .claimants import Claimant
from .line_order import Gpus


@dataclass(frozen=True)
class LineRow:
    """`run` and `job` are None for another workspace. `seconds`: until it is over or, if it waits, until its turn."""

    kind: str
    run: Run | None
    job: WeightsJob | None
    state: str
    gpus: float
    since: datetime
    seconds: float | None
    why: str = ""

    @property
    def evaluations(self) -> list[Any]:
        """The evaluations that wait for the job."""
        return list(self.job.evaluations.all()) if self.job else []

    def json(self) -> dict[str, Any]:
        run, shown = self.run, self.run or self.job
        return {
            "kind": self.kind,
            "id": run and run.pk,
            "job": self.job and self.job.pk,
            "evaluations": [each.pk for each in self.evaluations],
            "name": shown and str(shown),
            "experiment": run and run.experiment.name,
            "state": self.state,
            "priority": shown and Priority(shown.priority).label.lower(),
            "gpus": self.gpus,
            "since": self.since.isoformat(),
            "seconds": self.seconds,
            "why": self.why,
        }


@dataclass(frozen=True)
class WaitingLine:
    places: int | None
    gpus: int
    gpus_free: int
    running: list[LineRow]
    waiting: list[LineRow]
    more: int

    @property
    def is_full(self) -> bool:
        return self.places is not None and len(self.running) >= self.places

    def json(self) -> dict[str, Any]:
        rows = {"running": [row.json() for row in self.running], "waiting": [row.json() for row in self.waiting]}
        return {"places": self.places, "gpus": self.gpus, "gpus_free": self.gpus_free, **rows, "more": self.more}


def whole(workspace_id: int) -> WaitingLine:
    gpus = Gpus()
    there, free = gpus.there, gpus.free
    holders = line_words.Holders(timezone.now())
    standing = list(line_words.standing(holders, gpus))

    def row(each: Claimant, since: datetime, seconds: float | None, why: str = "") -> LineRow:
        mine = each.workspace_id == workspace_id
        run, job = (each.run, each.job) if mine else (None, None)
        asked = each.gpus if there else 0
        return LineRow(each.key[0], run, job, each.row.state, asked, since, seconds, why if mine else "")

    running = [row(each, each.row.state_at, holders.left(each)) for each in holders.all]
    waiting = [
        row(each.claimant, each.claimant.since, each.starts_in_s, each.reason or "It is about to start")
        for each in standing
    ]
    prefetch_related_objects([each.job for each in (*running, *waiting) if each.job], "evaluations")
    behind = len(claimants.waiting()) - len(waiting)
    return WaitingLine(settings.MAX_RUNNING_RUNS, there, free, running, waiting, max(0, behind))
