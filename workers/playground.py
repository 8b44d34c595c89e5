"""The queue of answers that judges and reward models score for somebody who tries models."""

from celery import shared_task

from webapp.playground import asking


@shared_task(name="workers.playground.score")
def score(pk: int) -> None:
    asking.score(pk)
