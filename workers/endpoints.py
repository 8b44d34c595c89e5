"""Tests and probes of endpoints, and trials of registered models."""

from celery import shared_task

from webapp.inference.services import checks, trials


@shared_task(name="workers.endpoints.check")
def check(check_id: int) -> None:
    checks.carry_out(check_id)


@shared_task(name="workers.endpoints.try_model")
def try_model(model_id: int) -> None:
    trials.carry_out(model_id)
