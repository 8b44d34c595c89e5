"""The queue of curation jobs: derived versions, duplicates, checks of rubrics."""

from celery import shared_task

from webapp.datasets import services


@shared_task(name="workers.curation.run")
def run(job_id: int) -> None:
    services.run_curation(job_id)


@shared_task(name="workers.curation.requeue_lost")
def requeue_lost() -> None:
    services.requeue_lost_curations()
