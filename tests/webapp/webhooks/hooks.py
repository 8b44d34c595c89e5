"""The events that the receivers of a workspace would get."""

from webapp.webhooks.events import EVENTS
from webapp.webhooks.models import Delivery, Webhook


def listen(membership) -> None:
    """A hook for every event. Nothing is sent to its address, because tests read the rows."""
    Webhook.objects.create(
        workspace=membership.workspace, url="https://receiver.invalid/", events=list(EVENTS), secret="sealed"
    )


def announced_events() -> list[tuple[str, dict]]:
    return list(Delivery.objects.order_by("id").values_list("event", "payload"))
