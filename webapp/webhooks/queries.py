"""Reads over hooks and deliveries."""

from django.db.models import OuterRef, QuerySet, Subquery

from webapp.core.problems import Invalid

from .events import TEST
from .models import Delivery, Webhook

# For statements that cannot afford a query of their own: whether any hook of workspace `%(workspace)s` wants one of the
# events in the array `%(events)s`, now or when it is resumed. Only if so is `services.announce` worth calling.
LISTENING = """
    EXISTS (SELECT 1 FROM webhooks_webhook
            WHERE workspace_id = %(workspace)s AND events && %(events)s::varchar[])
"""


def hooks(workspace_id: int) -> QuerySet[Webhook]:
    """The hooks, each with `last_state` and `last_at` of its newest delivery, None before the first."""
    newest = Delivery.objects.filter(webhook=OuterRef("pk")).order_by("-id")
    return (
        Webhook.objects.filter(workspace_id=workspace_id)
        .select_related("created_by")
        .annotate(last_state=Subquery(newest.values("state")[:1]), last_at=Subquery(newest.values("created_at")[:1]))
        .order_by("-id")
    )


def deliveries(hook: Webhook, state: str | None = None) -> QuerySet[Delivery]:
    """The deliveries of a hook, those in `state` if one is given. Raises Invalid at `state`."""
    rows = hook.deliveries.all()
    if not state:
        return rows
    if state not in Delivery.State.values:
        raise Invalid("Unknown state.", {"state": f"must be one of {', '.join(Delivery.State.values)}"})
    return rows.filter(state=state)


def failed(hook: Webhook, state: str) -> QuerySet[Delivery]:
    """Messages in this state that have failed, for good or so far; no tests. Other states than these two have none."""
    rows = hook.deliveries.exclude(event=TEST).filter(state=state)
    if state == Delivery.State.WAITING:
        return rows.filter(attempts__gt=0)
    return rows if state == Delivery.State.FAILED else rows.none()


def message(row: Delivery) -> dict[str, object]:
    """The JSON object that is sent. The same at every attempt, so that a receiver may compare."""
    return {
        "id": str(row.event_id),
        "type": row.event,
        "timestamp": row.created_at.isoformat(timespec="milliseconds"),
        "workspace": row.webhook.workspace.slug,
        "data": row.payload,
    }
