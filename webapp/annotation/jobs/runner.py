"""Work over whole projects, done by workers: begun once, told of as it goes, and taken up again when its worker died.

A piece of work is a function registered under its kind. It may be begun anew at any point, by another worker: what it
has done must be in the database, and not be done twice.
"""

import logging
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.annotation.models import Job, Project
from webapp.core import broadcast, locks
from webapp.core.health import DATABASE_AWAY
from webapp.core.problems import Problem
from webapp.core.tasks import enqueue, silent

logger = logging.getLogger(__name__)
QUIET = timedelta(seconds=90)  # nobody has told of a job for so long: perhaps its worker died
TELL_EVERY_S = 0.5
LOOK_AGAIN_S = 3.0
BROKE = "Something broke on our side; the server's log says what."


class Later(Exception):
    """What the work waits for is not there yet: it is begun anew in a while, and holds no worker meanwhile."""


class Report:
    """How far a job is, told a few times a second at most."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._told = 0.0

    def at(self, done: int, total: int) -> None:
        self.job.done, self.job.total = done, total
        if monotonic() - self._told >= TELL_EVERY_S:
            self._told = monotonic()
            save(self.job, "done", "total")


Work = Callable[[Job, Report], None]
WORK: dict[str, Work] = {}


def does(kind: Job.Kind) -> Callable[[Work], Work]:
    """Registers the work of a kind. It leaves what came of it in `job.result` and raises Problem where it cannot go on."""

    def register(work: Work) -> Work:
        WORK[kind] = work
        return work

    return register


def start(project: Project, kind: Job.Kind, membership: Membership | None = None, **params: Any) -> Job | None:
    """The job, queued; None while one of its kind is open."""
    try:
        with transaction.atomic():
            job = Job.objects.create(project=project, kind=kind, membership=membership, params=params)
            Job.objects.filter(project=project, kind=kind, finished_at__isnull=False).delete()
            enqueue("workers.review.job", job.pk)
    except IntegrityError:
        return None
    _tell(job)
    return job


def run(job_id: int) -> float | None:
    """Does the work, on one worker at a time. A Problem ends it and is shown on the page. Returns the seconds after which to
    come again where the work says `Later`.

    Raises what is no fault of the job (database away): it stays open and is taken up again.
    """
    with locks.alone(locks.Work.PROJECT_JOB, job_id) as ours:
        rows = Job.objects.select_related("project__version__dataset", "membership__user", "membership__workspace")
        job = rows.filter(pk=job_id, finished_at=None).first() if ours else None
        if job is None:
            return None
        job.state = Job.State.RUNNING
        save(job, "state")
        try:
            WORK[job.kind](job, Report(job))
            job.state = Job.State.FINISHED
        except Later:
            save(job, "done", "total")
            return LOOK_AGAIN_S
        except Problem as problem:
            job.state, job.problem = Job.State.FAILED, _words(problem)
        except DATABASE_AWAY:
            raise
        except Exception:
            logger.exception("%s failed", job)  # a mistake of ours would be taken up again and again
            job.state, job.problem = Job.State.FAILED, BROKE
        job.finished_at = timezone.now()
        save(job, "state", "problem", "result", "done", "total", "finished_at")
        return None


def _words(problem: Problem) -> str:
    reasons = "; ".join(f"{path}: {why}" for path, why in problem.fields.items())
    return f"{problem.message} {reasons}".strip()[:1000]


def take_up_lost() -> int:
    """Queues again what nobody has told of for a while; returns how many. One that is alive holds its lock, so whoever
    comes second goes away."""
    quiet = Job.objects.filter(silent("seen_at", QUIET), finished_at=None)
    lost = list(quiet.values_list("id", flat=True))
    Job.objects.filter(pk__in=lost).update(seen_at=timezone.now())
    for job_id in lost:
        enqueue("workers.review.job", job_id)
    return len(lost)


def open_one(project: Project, kind: Job.Kind) -> bool:
    return Job.objects.filter(project=project, kind=kind, finished_at=None).exists()


def stop(project: Project, kind: Job.Kind) -> None:
    """Asks an open job to end; what it has done stays. Only work that looks at `stopping` does."""
    Job.objects.filter(project=project, kind=kind, finished_at=None).update(stopping=True)


def stopping(job: Job) -> Callable[[], bool]:
    """Whether somebody wants it to end, asked of the database once a second however often it is called."""
    asked, wanted = 0.0, False

    def look() -> bool:
        nonlocal asked, wanted
        if not wanted and monotonic() - asked > 1:
            asked = monotonic()
            wanted = Job.objects.filter(pk=job.pk, stopping=True).exists()
        return wanted

    return look


def save(job: Job, *fields: str) -> None:
    """Writes these fields and a sign of life, and tells open pages."""
    job.seen_at = timezone.now()
    job.save(update_fields=[*fields, "seen_at"])
    _tell(job)


def _tell(job: Job) -> None:
    told = {"kind": job.kind, "state": job.state, "done": job.done, "total": job.total}
    broadcast.send(f"workspace.{job.project.workspace_id}", {"type": "project_job", "project": job.project_id, **told})
