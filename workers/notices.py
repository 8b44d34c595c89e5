"""The queue of notices."""

from celery import shared_task

from webapp.notices import services


@shared_task(name="workers.notices.trim")
def trim() -> None:
    services.trim()
