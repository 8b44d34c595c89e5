"""The queue of exports of personal data."""

from celery import shared_task

from webapp.personal_data import services


@shared_task(name="workers.personal_data.write")
def write(pk: int) -> None:
    services.carry_out(pk)


@shared_task(name="workers.personal_data.look")
def look() -> None:
    services.look()
