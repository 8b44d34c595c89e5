"""The queue of evaluations."""

from typing import Any

from celery import shared_task

from webapp.evaluation.licences import licence
from webapp.evaluation.work import running


@shared_task(name="workers.evaluation.run", bind=True, max_retries=None)
def run(self: Any, evaluation_id: int) -> None:
    delay = running.run(evaluation_id)
    if delay is not None:  # the cluster is at it
        raise self.retry(countdown=delay)


@shared_task(name="workers.evaluation.work_out_licence")
def work_out_licence(evaluation_id: int) -> None:
    licence.work_out(evaluation_id)
