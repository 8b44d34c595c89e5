"""The whole line, for a page and the API of one workspace."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import prefetch_related_objects
from django.utils import timezone

from webapp.core.background.priorities import Priority
from webapp.core.distributed.ray_client import JobResources
from webapp.weights.models import WeightsJob

from ..models import Run
from . import claimants, waiting_reasons
from .claimants import Claimant
from .line_order import Free


@dataclass(frozen=True)
class LineRow:
    """`run` and `job` are None for another workspace. `seconds`: until it is over or, if it waits, until its turn. `expected`: its memory is
    what it is expected to need, and not reserved."""

    kind: str
    run: Run | None
    job: WeightsJob | None
    state: str
    has: JobResources
    since: datetime
    seconds: float | None
    why: str = ""
    expected: bool = False

    @property
    def gpus(self) -> float:
        return self.has.gpus

    @property
    def memory_gb(self) -> float:
        return _gb(self.has)

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
            "cpus": self.has.cpus,
            "memory_gb": self.memory_gb,
            "memory_expected": self.expected and bool(self.memory_gb),
            "since": self.since.isoformat(),
            "seconds": self.seconds,
            "why": self.why,
        }


@dataclass(frozen=True)
class WaitingLine:
    """`there` is what the cluster has, `free` what nobody holds of it."""

    places: int | None
    there: JobResources
    free: JobResources
    running: list[LineRow]
    waiting: list[LineRow]
    more: int

    @property
    def gpus(self) -> int:
        return int(self.there.gpus)

    @property
    def gpus_free(self) -> int:
        return int(self.free.gpus)

    @property
    def memory(self) -> float:
        """The memory in GB, like `memory_free`."""
        return _gb(self.there)

    @property
    def memory_free(self) -> float:
        return _gb(self.free)

    @property
    def reserved(self) -> JobResources:
        """The kinds that all rows together have or ask for: the page has no column for a kind of which nobody asks for anything."""
        return sum((row.has for row in (*self.running, *self.waiting)), JobResources())

    @property
    def is_full(self) -> bool:
        return self.places is not None and len(self.running) >= self.places

    def json(self) -> dict[str, Any]:
        rows = {"running": [row.json() for row in self.running], "waiting": [row.json() for row in self.waiting]}
        gpus = {"gpus": self.gpus, "gpus_free": self.gpus_free}
        cpus = {"cpus": self.there.cpus, "cpus_free": self.free.cpus}
        memory = {"memory_gb": self.memory, "memory_gb_free": self.memory_free}
        return {"places": self.places, **gpus, **cpus, **memory, **rows, "more": self.more}


def _gb(found: JobResources) -> float:
    return round(found.memory_bytes / 1e9, 1)


def whole(workspace_id: int) -> WaitingLine:
    left = Free()
    there, free = left.there, left.all
    holders = waiting_reasons.Holders(timezone.now())
    standing = list(waiting_reasons.waiting_runs(holders, left))

    def row(each: Claimant, since: datetime, seconds: float | None, why: str = "") -> LineRow:
        mine = each.workspace_id == workspace_id
        run, job = (each.run, each.job) if mine else (None, None)
        asked = each.asks if there.gpus else replace(each.asks, gpus=0)
        told = why if mine else ""
        return LineRow(each.key[0], run, job, each.row.state, asked, since, seconds, told, each.expected)

    running = [row(each, each.row.state_at, holders.left(each)) for each in holders.all]
    waiting = [
        row(each.claimant, each.claimant.since, each.starts_in_s, each.reason or "It is about to start")
        for each in standing
    ]
    prefetch_related_objects([each.job for each in (*running, *waiting) if each.job], "evaluations")
    behind = len(claimants.waiting()) - len(waiting)
    return WaitingLine(settings.MAX_RUNNING_RUNS, there, free, running, waiting, max(0, behind))
