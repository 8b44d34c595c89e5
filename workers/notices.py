"""The queue of notices."""

from celery import shared_task

from webapp.notices import mailing, services


@shared_task(name="workers.notices.post")
def post() -> None:
    mailing.gather()
    mailing.take_up()


@shared_task(name="workers.notices.send")
def send(letter_id: int, attempt: int) -> None:
    mailing.send(letter_id, attempt)


@shared_task(name="workers.notices.trim")
def trim() -> None:
    services.trim()
