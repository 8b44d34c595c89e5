"""The whole line as a page and the API show it to one workspace."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from ..models import Run
from . import line_words, resources
from .line_order import Gpus, queued


@dataclass(frozen=True)
class Row:
    """`run` is None of another workspace's run. `seconds`: until it is over or, of one that waits, until its turn."""

    run: Run | None
    state: str
    gpus: int
    since: datetime
    seconds: float | None
    why: str = ""

    def json(self) -> dict[str, Any]:
        run = self.run
        return {
            "id": run and run.pk,
            "name": run and str(run),
            "experiment": run and run.experiment.name,
            "state": self.state,
            "priority": run and run.get_priority_display().lower(),
            "gpus": self.gpus,
            "since": self.since.isoformat(),
            "seconds": self.seconds,
            "why": self.why,
        }


@dataclass(frozen=True)
class Line:
    places: int | None
    gpus: int
    gpus_free: int
    running: list[Row]
    waiting: list[Row]
    more: int

    @property
    def is_full(self) -> bool:
        return self.places is not None and len(self.running) >= self.places

    def json(self) -> dict[str, Any]:
        rows = {"running": [row.json() for row in self.running], "waiting": [row.json() for row in self.waiting]}
        return {"places": self.places, "gpus": self.gpus, "gpus_free": self.gpus_free, **rows, "more": self.more}


def whole(workspace_id: int) -> Line:
    gpus = Gpus()
    there, free = gpus.there, gpus.free
    holders = line_words.Holders(timezone.now())

    def row(run: Run, since: datetime, seconds: float | None, why: str = "") -> Row:
        mine = run.experiment.workspace_id == workspace_id
        asked = resources.asked(run) if there else 0
        return Row(run if mine else None, run.state, asked, since, seconds, why if mine else "")

    running = [row(run, run.state_at, holders.left(run)) for run in holders.runs]
    waiting = [
        row(each.run, each.run.attempt_at, each.starts_in_s, each.reason or "It is about to start")
        for each in line_words.standing(holders, gpus)
    ]
    return Line(settings.MAX_RUNNING_RUNS, there, free, running, waiting, max(0, queued().count() - len(waiting)))
