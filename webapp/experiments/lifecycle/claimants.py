"""The line and the places: runs, and jobs that need weights, also those of evaluations and judges.

No process of a run waits for a job, nor does a job for another job. So everything that has a place ends without waiting for a place. A
checkpoint that is evaluated within a run is evaluated by the run's own process.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from webapp.core.distributed.ray_client import JobResources
from webapp.weights import line as weights_line
from webapp.weights import resources as weights_resources
from webapp.weights.models import WeightsJob

from ..models import ALIVE, LOGGED, Run, RunQuerySet
from . import resources, together


@dataclass(frozen=True)
class Claimant:
    """A run or a job: one of `run` and `job` is set. `since`: when it was asked for; `asks`: what it asks of the cluster, or has.
    `expected`: nobody has asked for its memory; it is what it is expected to need. `beside`: the other runs of its process, if it has a
    place."""

    workspace_id: int
    since: datetime
    asks: JobResources
    run: Run | None = None
    job: WeightsJob | None = None
    expected: bool = False
    beside: tuple[Run, ...] = ()

    @property
    def row(self) -> Run | WeightsJob:
        row = self.run or self.job
        assert row is not None  # noqa: S101  one of both is there
        return row

    @property
    def gpus(self) -> float:
        return self.asks.gpus

    @property
    def own(self) -> JobResources:
        """The resources that it asks for on one machine. Those of a run have a GPU, even if the cluster has none."""
        if self.job:
            return weights_resources.asked(self.job.params)
        return resources.process_resources(self.run) if self.run else self.asks

    @property
    def key(self) -> tuple[str, int]:
        return ("run" if self.run else "job", self.row.pk)

    @property
    def rank(self) -> tuple[int, datetime, str, int]:
        """The place among what its workspace has in the line."""
        return (-self.row.priority, self.since, *self.key)

    @property
    def not_before(self) -> datetime | None:
        return self.run.not_before if self.run else None

    @property
    def reason(self) -> str:
        """The reason as it is stored."""
        return self.run.state_reason if self.run else self.row.problem  # type: ignore[union-attr]


def of_run(run: Run) -> Claimant:
    return _of_runs([run])[0]


def _of_runs(runs: Iterable[Run]) -> list[Claimant]:
    expects = resources.expects_memory()
    return [_of_run(run, expects and not resources.process_resources(run).memory_bytes) for run in runs]


def _of_run(run: Run, expects: bool) -> Claimant:
    asks = resources.requested_resources(run, expects)
    return Claimant(run.experiment.workspace_id, run.attempt_at, asks, run=run, expected=expects)


def of_job(job: WeightsJob) -> Claimant:
    return _of_jobs([job])[0]


def _of_jobs(jobs: Iterable[WeightsJob]) -> list[Claimant]:
    expects = resources.expects_memory()
    return [_of_job(job, expects) for job in jobs]


def _of_job(job: WeightsJob, expects: bool) -> Claimant:
    reserves = weights_resources.asked(job.params).memory_bytes
    asks = weights_resources.counted(job.params, job.memory_needed if expects else None)
    since = job.asked_at or job.created_at
    return Claimant(job.workspace_id, since, asks, job=job, expected=expects and not reserves)


def launched(states: Collection[str]) -> RunQuerySet:
    """The runs in these states that were launched here. A run that was logged from outside takes no place."""
    return Run.objects.filter(state__in=states).exclude(recipe=LOGGED)


def waiting() -> list[Claimant]:
    runs = launched([Run.State.QUEUED]).select_related("experiment").defer("config")
    return [*_of_runs(runs), *_of_jobs(weights_line.waiting())]


def placed() -> list[Claimant]:
    """All that have a place, with their names; one for runs that train together."""
    runs = list(together.processes(launched(ALIVE).with_names().defer("config").order_by("id")))
    firsts = _of_runs(first for first, *_ in runs)
    found = [replace(each, beside=tuple(others)) for each, (_, *others) in zip(firsts, runs, strict=True)]
    return [*found, *_of_jobs(weights_line.placed().order_by("id"))]
