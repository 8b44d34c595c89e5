"""Queue of jobs that need weights outside training. Tasks may arrive twice; `webapp.weights.jobs` copes."""

from typing import Any

from celery import shared_task

from webapp.weights import jobs


@shared_task(name="workers.weights.launch", bind=True, max_retries=None)
def launch(self: Any, pk: int) -> None:
    delay = jobs.launch(pk)
    if delay is not None:
        raise self.retry(countdown=delay)


@shared_task(name="workers.weights.stop")
def stop(pk: int) -> None:
    jobs.stop(pk)


@shared_task(name="workers.weights.watch")
def watch() -> None:
    jobs.watch()
