"""The queue of exports of personal data, and accounts that nobody uses."""

from celery import shared_task

from webapp.personal_data import retention, services


@shared_task(name="workers.personal_data.write")
def write(pk: int) -> None:
    services.carry_out(pk)


@shared_task(name="workers.personal_data.look")
def look() -> None:
    services.look()
    retention.look()
