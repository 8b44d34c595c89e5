"""Jobs over whole projects, done by workers: started once, with reported progress, and taken up again if the worker dies.

A job's work is a function registered under its kind. Another worker may start it again at any point. So finished work must be in the
database, and must not be done twice.
"""

from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.annotation.models import Job, Project
from webapp.core import broadcast
from webapp.core.background.jobs import JobKind, JobReport, Later, failure
from webapp.core.database import locks
from webapp.core.problems import Problem
from webapp.core.tasks import enqueue

LOOK_AGAIN_S = 3.0

Report = JobReport[Job]
Work = Callable[[Job, Report], None]
WORK: dict[str, Work] = {}


def does(kind: Job.Kind) -> Callable[[Work], Work]:
    """Registers the function of a kind. It leaves its result in `job.result` and raises Problem if it cannot continue."""

    def register(work: Work) -> Work:
        WORK[kind] = work
        return work

    return register


def start(project: Project, kind: Job.Kind, membership: Membership | None = None, **params: Any) -> Job | None:
    """The queued job; None if one of its kind is open."""
    try:
        with transaction.atomic():
            job = Job.objects.create(project=project, kind=kind, membership=membership, params=params)
            Job.objects.filter(project=project, kind=kind, finished_at__isnull=False).delete()
            enqueue("workers.review.job", job.pk)
    except IntegrityError:
        return None
    broadcast_job(job)
    return job


def broadcast_job(job: Job) -> None:
    told = {"kind": job.kind, "state": job.state, "done": job.done, "total": job.total}
    broadcast.send(f"workspace.{job.project.workspace_id}", {"type": "project_job", "project": job.project_id, **told})


PROJECT_JOB = JobKind(
    Job.objects.select_related("project__version__dataset", "membership__user", "membership__workspace"),
    locks.Work.PROJECT_JOB,
    "workers.review.job",
    broadcast_job,
    open=Q(finished_at=None),
)
save = PROJECT_JOB.save
stopping = PROJECT_JOB.stop_asked  # asked by jobs that cost money


def run(job_id: int) -> float | None:
    """Does the work, on one worker at a time. A Problem ends it and is shown on the page. Returns the seconds after which to run again if
    the work raises `Later`.

    Raises errors that are not the job's fault (database away): the job stays open and is taken up again.
    """
    with PROJECT_JOB.claimed(job_id) as job:
        if job is None:
            return None
        try:
            broken = failure(WORK[job.kind], job, Report(PROJECT_JOB, job), words=_words)
        except Later:
            save(job, "done", "total")
            return LOOK_AGAIN_S
        state = Job.State.FINISHED if broken is None else Job.State.FAILED
        save(job, "result", "done", "total", state=state, problem=broken or "", finished_at=timezone.now())
    return None


def _words(problem: Problem) -> str:
    reasons = "; ".join(f"{path}: {why}" for path, why in problem.fields.items())
    return f"{problem.message} {reasons}".strip()[:1000]


def open_one(project: Project, kind: Job.Kind) -> bool:
    return Job.objects.filter(project=project, kind=kind, finished_at=None).exists()


def stop(project: Project, kind: Job.Kind) -> None:
    """Asks an open job to end; finished work stays. Only jobs that check `stopping` end early."""
    Job.objects.filter(project=project, kind=kind, finished_at=None).update(stopping=True)
