"""Every change to hooks, and the announcement of events. `delivering` sends the messages; only workers call it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.encryption import seal
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue

from . import queries, signing, targets
from .events import EVENTS, TEST
from .models import Delivery, Webhook

MOST_HOOKS = 20
GIVE_UP_AFTER = timedelta(days=1)
HEAD_START = timedelta(seconds=30)  # for the task sent on commit; afterwards upkeep takes it for lost
SENT_AT_ONCE = 200  # of the messages of one change
State = Delivery.State
Listener = Callable[[int, str, UUID, Mapping[str, object], int | None], None]
_listeners: list[tuple[frozenset[str], Listener]] = []


def when_announced(events: Iterable[str]) -> Callable[[Listener], Listener]:
    """Decorates what is done, in the same transaction, whenever one of `events` is announced: it is given the workspace, the event,
    the event's id, the payload, and the person who did it, if one did."""

    def add(listener: Listener) -> Listener:
        _listeners.append((frozenset(events), listener))
        return listener

    return add


def announce(workspace_id: int, event: str, payload: Mapping[str, object], by: int | None = None) -> None:
    """Tells every hook of the workspace that asked for `event`: one row each, written in the caller's transaction.

    So an event is announced exactly if the change it tells of is kept, and no lost broker, worker or receiver loses it.
    `payload` is JSON (times allowed), becomes `data` of the message, and holds ids and facts, not texts. `by` is the person who did
    it, who need not be told.
    """
    announce_all(workspace_id, event, [payload], by)


def announce_all(
    workspace_id: int, event: str, payloads: Iterable[Mapping[str, object]], by: int | None = None
) -> None:
    """`announce` for each of the payloads, which are only looked at if somebody listens. Of many, the first are sent at
    once and upkeep sends the rest: a change of a hundred thousand tasks does not flood the queue.

    Hooks that are paused keep what they asked for as well; see `set_active`.
    """
    if event not in EVENTS:
        raise ValueError(f"{event} is not in EVENTS")
    if not connection.in_atomic_block:
        raise RuntimeError("call announce() in the transaction of the change that it tells about")
    listeners = [listener for events, listener in _listeners if event in events]
    hooks = list(Webhook.objects.filter(workspace_id=workspace_id, events__contains=[event]))
    if not hooks and not listeners:
        return
    told = [(uuid4(), payload) for payload in payloads]
    for listener in listeners:
        for event_id, payload in told:
            listener(workspace_id, event, event_id, payload, by)
    if hooks:
        _queue(hooks, event, told)


def _queue(hooks: Sequence[Webhook], event: str, told: Iterable[tuple[UUID, Mapping[str, object]]]) -> list[Delivery]:
    """Writes a row for each hook and event. `told` are ids of events and their payloads."""
    now = timezone.now()
    rows = Delivery.objects.bulk_create(
        (
            Delivery(
                webhook=hook,
                event_id=event_id,
                event=event,
                payload=dict(payload),
                created_at=now,
                next_try_at=now + HEAD_START,
                give_up_at=now + GIVE_UP_AFTER,
            )
            for event_id, payload in told
            for hook in hooks
        ),
        batch_size=1_000,
    )
    for row in [row for row in rows if row.webhook.active][:SENT_AT_ONCE]:
        enqueue("workers.webhooks.send", row.pk, row.attempts)
    return rows


def create(membership: Membership, url: str, events: Sequence[str]) -> tuple[Webhook, str]:
    """A hook and the secret it signs with, which is shown only now. Raises Invalid at `url` or `events`, Conflict."""
    chosen, target, secret = _events(events), targets.checked(url), signing.new_secret()
    with transaction.atomic():
        # locked, so that two tabs together do not make one too many
        membership.workspace.__class__.objects.select_for_update().get(pk=membership.workspace_id)
        if Webhook.objects.filter(workspace=membership.workspace).count() >= MOST_HOOKS:
            raise Conflict(f"A workspace has at most {MOST_HOOKS} webhooks. Delete one first.", "too_many_webhooks")
        hook = Webhook.objects.create(
            workspace=membership.workspace, url=target, events=chosen, secret=seal(secret), created_by=membership.user
        )
        audit.record(membership, membership.user, "webhook.created", hook, host=_host(target), events=chosen)
    return hook, secret


def change(
    membership: Membership, hook: Webhook, *, url: str | None = None, events: Sequence[str] | None = None
) -> None:
    """Points the hook elsewhere or at other events. Raises Invalid at `url` or `events`; None leaves as it is, also if somebody else changes it
    at the same time. Raises Conflict if the hook was deleted meanwhile."""
    fields: dict[str, Any] = {"failures": 0, "quiet_until": None}  # another address, another chance
    if url is not None:
        fields["url"] = targets.checked(url)
    if events is not None:
        fields["events"] = _events(events)
    with transaction.atomic():
        if not Webhook.objects.filter(pk=hook.pk).update(**fields):
            raise Conflict("The webhook was deleted meanwhile.", code="gone")
        hook.refresh_from_db()
        audit.record(membership, membership.user, "webhook.changed", hook, host=_host(hook.url), events=hook.events)


@transaction.atomic
def set_active(membership: Membership, hook: Webhook, active: bool) -> None:
    """A paused hook is sent nothing. What happens meanwhile waits for it, up to a month, and goes out when it is resumed,
    oldest first; from then on it is tried for as long as if it had just happened."""
    if Webhook.objects.filter(pk=hook.pk, active=not active).update(active=active, failures=0, quiet_until=None):
        if active:
            waiting = Delivery.objects.filter(webhook=hook, state=State.WAITING)
            waiting.update(give_up_at=timezone.now() + GIVE_UP_AFTER)
        audit.record(membership, membership.user, "webhook.resumed" if active else "webhook.paused", hook)
    hook.active = active


@transaction.atomic
def renew_secret(membership: Membership, hook: Webhook) -> str:
    """A new secret, shown only now. The old one signs nothing from here on, not even what already waits."""
    secret = signing.new_secret()
    Webhook.objects.filter(pk=hook.pk).update(secret=seal(secret))
    audit.record(membership, membership.user, "webhook.secret_renewed", hook)
    return secret


@transaction.atomic
def delete(membership: Membership, hook: Webhook) -> None:
    """Erases the hook with its log; what waits for it is not sent."""
    audit.record(membership, membership.user, "webhook.deleted", hook, host=_host(hook.url))
    hook.delete()


@transaction.atomic
def test(membership: Membership, hook: Webhook) -> Delivery:
    """Sends the event `webhook.test` to this hook, once. Raises Conflict while it is paused."""
    _awake(hook)
    rows = _queue([hook], TEST, [(uuid4(), {"sent_by": membership.user.email})])
    Delivery.objects.filter(pk=rows[0].pk).update(give_up_at=rows[0].created_at)
    return rows[0]


@transaction.atomic
def deliver_again(membership: Membership, row: Delivery) -> Delivery:
    """Sends it now, with the same id. What was over is tried once more only; what waits continues as before if it fails.

    Raises Conflict while the hook is paused. While it is being sent nothing changes.
    """
    _awake(row.webhook)
    now = timezone.now()
    same = Delivery.objects.filter(pk=row.pk, attempts=row.attempts)
    over = same.filter(state__in=(State.DELIVERED, State.FAILED))
    if over.update(state=State.WAITING, next_try_at=now + HEAD_START, give_up_at=now) or same.filter(
        state=State.WAITING
    ).update(next_try_at=now + HEAD_START):
        enqueue("workers.webhooks.send", row.pk, row.attempts)
        audit.record(membership, membership.user, "webhook.delivered_again", row.webhook, event=str(row.event_id))
    row.refresh_from_db()
    return row


@transaction.atomic
def deliver_failed_again(membership: Membership, hook: Webhook) -> int:
    """Sends again what has failed, except tests: each message for as long as if it had just happened. A message that waits for its next
    attempt, which may be hours away, is sent now too, and continues as before if it fails. Returns how many.

    Upkeep sends them, so many at once do not flood the queue. Raises Conflict while the hook is paused.
    """
    _awake(hook)
    now = timezone.now()
    # first those that wait: the others wait too after their update
    count = queries.failed(hook, State.WAITING).update(next_try_at=now)
    count += queries.failed(hook, State.FAILED).update(
        state=State.WAITING, next_try_at=now, give_up_at=now + GIVE_UP_AFTER
    )
    if count:
        audit.record(membership, membership.user, "webhook.delivered_again", hook, messages=count)
    return count


def _awake(hook: Webhook) -> None:
    """Wakes the receiver, however long it has been silent, because a person who presses a button wants to know now."""
    if not Webhook.objects.filter(pk=hook.pk, active=True).update(failures=0, quiet_until=None):
        raise Conflict("The webhook is paused. Resume it first.", "paused")


def _events(events: Sequence[str]) -> list[str]:
    unknown = sorted(set(events) - set(EVENTS))
    if unknown:
        raise Invalid("Unknown event.", {"events": f"{', '.join(unknown)}: not one of {', '.join(EVENTS)}"})
    if not events:
        raise Invalid("Choose an event.", {"events": "must name at least one event"})
    return [name for name in EVENTS if name in events]


def _host(url: str) -> str:
    # of the address only the host goes into the audit log: the rest may hold the receiver's own key
    return targets.parse(url).host
