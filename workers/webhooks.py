"""The queue of webhooks."""

from celery import shared_task

from webapp.webhooks import delivering


@shared_task(name="workers.webhooks.send")
def send(delivery_id: int, attempt: int) -> None:
    delivering.send(delivery_id, attempt)


@shared_task(name="workers.webhooks.take_up")
def take_up() -> None:
    delivering.take_up()


@shared_task(name="workers.webhooks.trim")
def trim() -> None:
    delivering.trim()
