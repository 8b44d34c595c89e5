"""Sending what was announced. Called by the workers only; a task may come twice, late or never.

A task names a delivery and the attempt it was made for; the worker that raises the attempt number has it. A delivery that a lost broker or
worker leaves behind is due again at `next_try_at`, which upkeep watches; it also starts every retry.
"""

import json
import logging
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic, time

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from trainer.product import NAME
from webapp.core.encryption import Unreadable, unseal
from webapp.core.tasks import AHEAD, enqueue, written_ahead

from . import queries, signing
from .models import Delivery, Webhook
from .post import TIMEOUT_S, NoAnswer, post
from .services import HEAD_START
from .targets import DestinationRefused

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 4 * 3600.0
LONGEST_QUIET_S = 300.0
LEASE = timedelta(seconds=3 * TIMEOUT_S)  # an attempt this old has lost its worker
TAKEN_AT_ONCE = 200
KEPT = timedelta(days=30)
USER_AGENT = f"{NAME}-Webhooks/1"
State = Delivery.State


@dataclass(frozen=True)
class DeliveryOutcome:
    """The outcome of one attempt. `error` is empty exactly if it was delivered; `status` None if nobody answered; `silent` if that took
    time and the receiver should rest."""

    error: str
    status: int | None = None
    answer: str = ""
    silent: bool = False


def send(delivery_id: int, attempt: int) -> None:
    """Sends the delivery if it still waits for this attempt, and stores the result."""
    row = _waiting(delivery_id, attempt).select_related("webhook__workspace").first()
    if row is None or not row.webhook.active:
        return
    if until := _quiet(row.webhook):
        # spread out: the receiver that comes back is not met by all of them at once
        _waiting(delivery_id, attempt).update(next_try_at=until + timedelta(seconds=random.uniform(0, 10)))  # noqa: S311
        return
    now = timezone.now()
    if not _waiting(delivery_id, attempt).update(
        state=State.SENDING, attempts=attempt + 1, tried_at=now, next_try_at=now + LEASE
    ):
        return
    row.attempts = attempt + 1
    started = monotonic()
    _settle(row, _try(row), round(1000 * (monotonic() - started)))


def _waiting(delivery_id: int, attempt: int) -> QuerySet[Delivery]:
    return Delivery.objects.filter(id=delivery_id, state=State.WAITING, attempts=attempt)


def _quiet(hook: Webhook) -> datetime | None:
    """The time until which a silent receiver is left alone; None for the one attempt that may see whether it is back.

    Every attempt on a dead host holds a worker for as long as the timeout. All that wait for it share one attempt.
    """
    if not hook.failures or hook.quiet_until is None:
        return None
    now = timezone.now()
    over = Q(quiet_until__lte=now) | Q(quiet_until__gt=now + timedelta(seconds=LONGEST_QUIET_S) + AHEAD)
    if Webhook.objects.filter(over, pk=hook.pk).update(quiet_until=now + LEASE):
        return None
    return max(hook.quiet_until, now)


def _try(row: Delivery) -> DeliveryOutcome:
    body = json.dumps(queries.message(row), cls=DjangoJSONEncoder, ensure_ascii=False, separators=(",", ":")).encode()
    try:
        signature = signing.headers(unseal(row.webhook.secret), str(row.event_id), int(time()), body)
        headers = {"content-type": "application/json", "user-agent": USER_AGENT, **signature}
        answer = post(row.webhook.url, headers, body)
    except Unreadable as error:
        return DeliveryOutcome(f"The secret cannot be read: {error}. Create a new secret on the webhook's page.")
    except DestinationRefused as error:
        return DeliveryOutcome(f"Not sent: {error}.", silent=True)
    except NoAnswer as error:
        return DeliveryOutcome(f"No answer: {error}.", silent=True)
    if 200 <= answer.status < 300:
        return DeliveryOutcome("", answer.status, answer.excerpt)
    if 300 <= answer.status < 400:
        to = f" to {answer.location[:200]}" if answer.location else ""
        return DeliveryOutcome(
            f"A redirect{to} is not followed. Enter the final address.", answer.status, answer.excerpt
        )
    return DeliveryOutcome(f"The receiver answered {answer.status}.", answer.status, answer.excerpt)


def _settle(row: Delivery, outcome: DeliveryOutcome, duration_ms: int) -> None:
    """Writes the outcome, unless the lease ran out meanwhile and another attempt has begun."""
    now = timezone.now()
    state, due = State.DELIVERED, now
    if outcome.error:
        due = now + timedelta(seconds=pause_s(row.attempts))
        state = State.WAITING if due <= row.give_up_at else State.FAILED
    with transaction.atomic():
        Delivery.objects.filter(id=row.pk, state=State.SENDING, attempts=row.attempts).update(
            state=state,
            next_try_at=due,
            status=outcome.status,
            duration_ms=duration_ms,
            answer=outcome.answer,
            error=outcome.error,
        )
        _remember(row.webhook, outcome, now)


def _remember(hook: Webhook, outcome: DeliveryOutcome, now: datetime) -> None:
    mine = Webhook.objects.filter(pk=hook.pk)
    if outcome.silent:
        quiet = min(FIRST_PAUSE_S * 2 ** min(hook.failures, 30), LONGEST_QUIET_S)
        mine.update(failures=F("failures") + 1, quiet_until=now + timedelta(seconds=quiet))
    else:
        mine.exclude(failures=0).update(failures=0, quiet_until=None)


def pause_s(attempts: int) -> float:
    """Seconds to wait after this many failed attempts: doubling from 10 s to 4 h, each up to a quarter shorter so that
    what failed together does not come back together."""
    longest = min(FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 30), LONGEST_PAUSE_S)
    return longest * random.uniform(0.75, 1)  # noqa: S311 - spreads load, guards nothing


def take_up() -> int:
    """One round of upkeep: queues what is due, also what a lost task or worker has left. Returns how many."""
    now = timezone.now()
    _follow_the_clock(now)
    lost = Delivery.objects.filter(state=State.SENDING, next_try_at__lt=now)
    died = "The worker died while sending. It is not known whether the message arrived."
    lost.filter(give_up_at__lte=now).update(state=State.FAILED, error=died, status=None, answer="")
    lost.update(state=State.WAITING, next_try_at=now, error=died, status=None, answer="")
    due = Delivery.objects.filter(state=State.WAITING, next_try_at__lte=now, webhook__active=True)
    rows = list(due.order_by("next_try_at", "id").values_list("id", "attempts")[:TAKEN_AT_ONCE])
    with transaction.atomic():
        # not offered again in the next round: with a busy queue that would only make it longer
        Delivery.objects.filter(id__in=[pk for pk, _ in rows], state=State.WAITING, next_try_at__lte=now).update(
            next_try_at=now + HEAD_START
        )
        for pk, attempts in rows:
            enqueue("workers.webhooks.send", pk, attempts)
    return len(rows)


def _follow_the_clock(now: datetime) -> None:
    """Makes deliveries due whose times lie ahead, because they would wait longer by as much as the clock went back."""
    soon = now + max(LEASE, HEAD_START)
    written = written_ahead("tried_at") | Q(written_ahead("created_at"), tried_at=None)
    late = Delivery.objects.filter(written, next_try_at__gt=soon)
    late.filter(state=State.WAITING).update(next_try_at=now)
    late.filter(state=State.SENDING).update(next_try_at=soon)


def trim() -> None:
    """Forgets what is over and older than a month, and what has waited that long for a paused hook; the audit log keeps
    what people did."""
    over = Q(state__in=(State.DELIVERED, State.FAILED)) | Q(webhook__active=False)
    Delivery.objects.filter(over, created_at__lt=timezone.now() - KEPT).delete()
