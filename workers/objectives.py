"""The calculator of the objectives' pages."""

from typing import Any

from celery import shared_task

from webapp.objectives import calculator


@shared_task(name="workers.objectives.calculate", bind=True, max_retries=60)
def calculate(self: Any, calculation_id: str) -> None:
    if not calculator.carry_out(calculation_id):
        raise self.retry(countdown=1)
