"""The queue behind the pages of projects: coefficients, and jobs over all their answers or tasks."""

from typing import Any

from celery import shared_task

from webapp.annotation.agreement import refresh, upkeep
from webapp.annotation.jobs import runner
from webapp.annotation.models import Project


@shared_task(name="workers.review.measure")
def measure(project_id: int) -> None:
    refresh.bring_up_to_date(Project.objects.get(pk=project_id))


@shared_task(name="workers.review.job", bind=True, max_retries=None)
def job(self: Any, job_id: int) -> None:
    delay = runner.run(job_id)
    if delay is not None:  # the cluster is at it
        raise self.retry(countdown=delay)


@shared_task(name="workers.review.take_up_lost")
def take_up_lost() -> None:
    upkeep.take_up_lost()
