"""What was announced, as the receivers of a workspace would hear it."""

from webapp.webhooks.events import EVENTS
from webapp.webhooks.models import Delivery, Webhook


def listen(membership) -> None:
    """A hook for every event. Its address is never asked: tests read the rows."""
    Webhook.objects.create(
        workspace=membership.workspace, url="https://receiver.invalid/", events=list(EVENTS), secret="sealed"
    )


def told() -> list[tuple[str, dict]]:
    return list(Delivery.objects.order_by("id").values_list("event", "payload"))
