"""The queue of evaluations."""

from celery import shared_task

from webapp.evaluation import running, services


@shared_task(name="workers.evaluation.run")
def run(evaluation_id: int) -> None:
    running.run(evaluation_id)


@shared_task(name="workers.evaluation.requeue_lost")
def requeue_lost() -> None:
    services.requeue_lost()
