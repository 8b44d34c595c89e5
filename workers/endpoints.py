"""Tests and probes of endpoints, and trials of registered models."""

from typing import Any

from celery import shared_task

from webapp.inference.endpoints import checks
from webapp.inference.trials import services as trials


@shared_task(name="workers.endpoints.check")
def check(check_id: int) -> None:
    checks.carry_out(check_id)


@shared_task(name="workers.endpoints.try_model", bind=True, max_retries=None)
def try_model(self: Any, model_id: int) -> None:
    if not trials.carry_out(model_id):
        raise self.retry(countdown=trials.AGAIN_S)


@shared_task(name="workers.endpoints.requeue_lost")
def requeue_lost() -> None:
    trials.requeue_lost()
