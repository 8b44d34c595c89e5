"""Tests and probes of endpoints."""

from celery import shared_task

from webapp.inference.services import checks


@shared_task(name="workers.endpoints.check")
def check(check_id: int) -> None:
    checks.carry_out(check_id)
