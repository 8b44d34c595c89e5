"""Jobs that Ray has and that nothing here asked for: submitted by hand, by another program, or left by a run that is over.

They hold processors, memory and GPUs for which our runs wait, so administrators see them. Nobody ends them by itself: on a cluster that
several installations share, another one may need them.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils.dateparse import parse_datetime

from webapp.core.distributed import cluster
from webapp.weights.jobs import WEIGHTS
from webapp.weights.models import ALIVE as JOBS_ALIVE
from webapp.weights.models import WeightsJob

from ..models import ALIVE, Run
from .jobs import RUN

ENDING = timedelta(minutes=1)  # a process may need this long to end after its last message
NUMBERED = re.compile(r"(?P<prefix>[a-z]+)-(?P<pk>[0-9]{1,18})-(?P<attempt>[0-9]{1,9})")
COLUMNS = ("pk", "attempt", "state", "state_at")


@dataclass(frozen=True)
class UnknownJob:
    """`since` is None if Ray does not say it."""

    name: str
    waits: bool
    command: str
    since: datetime | None


def unknown_jobs() -> list[UnknownJob]:
    """The unknown jobs in Ray's last list, which upkeep fetches, the newest first; none if Ray does not answer."""
    listed = cluster.unfinished_jobs()
    if listed is None:
        return []
    ours = _ours(listed.at, [job.name for job in listed.jobs])
    found = [
        UnknownJob(job.name, job.status == "PENDING", job.command, parse_datetime(job.started) if job.started else None)
        for job in listed.jobs
        if job.name not in ours
    ]
    return sorted(found, key=lambda job: job.since.timestamp() if job.since else 0.0, reverse=True)


def _ours(at: datetime, names: Collection[str]) -> set[str]:
    """The names that jobs of runs and jobs here had at that time."""
    runs = _named(Run.objects.all(), ALIVE, RUN.prefix, names, at)
    jobs = _named(WeightsJob.objects.all(), JOBS_ALIVE, WEIGHTS.prefix, names, at)
    carried = Run.objects.filter(state__in=ALIVE, carried_by__in=names).values_list("carried_by", flat=True)
    return {*runs, *jobs, *carried}


def _named(
    rows: QuerySet[Run] | QuerySet[WeightsJob],
    alive: Collection[str],
    prefix: str,
    names: Collection[str],
    at: datetime,
) -> Iterator[str]:
    """The names that belong to the present attempt of a row, or to any attempt if the row has changed since shortly before `at`."""
    numbered = {name: found for name in names if (found := NUMBERED.fullmatch(name)) and found["prefix"] == prefix}
    present = rows.filter(pk__in=[int(each["pk"]) for each in numbered.values()])
    told = {pk: (attempt, state in alive, since) for pk, attempt, state, since in present.values_list(*COLUMNS)}
    for name, each in numbered.items():
        attempt, is_alive, since = told.get(int(each["pk"]), (0, False, None))
        if (is_alive and attempt == int(each["attempt"])) or (since and since >= at - ENDING):
            yield name
