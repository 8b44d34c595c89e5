"""The queue of answers that judges and reward models score for somebody who tries models."""

from celery import shared_task

from webapp.playground import asking, scoring


@shared_task(name="workers.playground.score")
def score(pk: int) -> None:
    asking.score(pk)


@shared_task(name="workers.playground.requeue_lost")
def requeue_lost() -> None:
    scoring.requeue_lost()
