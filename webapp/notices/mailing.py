"""Notices by mail. Called by the workers only; a task may come twice, late or never.

A person's notices are gathered for a minute, and for ten after the last letter: forty runs that fail are one mail. A letter is sent once as
far as SMTP allows: if a worker died, or the server's answer was lost, after the server had taken the mail, it is sent again under the same
Message-ID, by which mail programs tell that it is the same. Notices that the person may no longer read are left out, up to the moment of
sending.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from trainer.contracts.plurals import with_noun
from trainer.product import NAME
from webapp.accounts.models import Membership, User
from webapp.core.network import mail
from webapp.core.network.addresses import public_url
from webapp.core.tasks import enqueue

from . import queries, words
from .dispatch import READERS
from .models import Letter, Mails, Notice, NoticeSettings

GATHERED, APART = timedelta(minutes=1), timedelta(minutes=10)
LEASE = timedelta(seconds=60)  # an attempt this old has lost its worker
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)
GIVE_UP_AFTER = timedelta(days=1)
AT_ONCE = 200
MOST_LINES = 40
State = Letter.State


def gather() -> int:
    """Puts notices that have waited long enough into letters, one for each person. Returns the number of letters."""
    if not mail.is_configured():
        return 0
    now, made = timezone.now(), 0
    waiting = Notice.objects.filter(mail=True).values("user_id").annotate(first=Min("created_at"))
    recent = Letter.objects.filter(user_id=OuterRef("user_id"), created_at__gt=now - APART)
    due = waiting.filter(~Exists(recent), first__lte=now - GATHERED).order_by("first")
    for user_id in list(due.values_list("user_id", flat=True)[:AT_ONCE]):
        made += _gather(user_id)
    return made


@transaction.atomic
def _gather(user_id: int) -> bool:
    """False if another worker has gathered them meanwhile, or nothing is left to mail."""
    # the settings are there: without them nothing is mailed. Two rounds at once take turns at their row
    NoticeSettings.objects.select_for_update().filter(user_id=user_id).first()
    rows = Notice.objects.filter(user_id=user_id, mail=True)
    ids = list(_allowed(rows.filter(read_at=None)).values_list("pk", flat=True))
    recent = Letter.objects.filter(user_id=user_id, created_at__gt=timezone.now() - APART).exists()
    if recent or not rows.update(mail=False) or not ids:
        return False
    now = timezone.now()
    letter = Letter.objects.create(user_id=user_id, created_at=now, next_try_at=now + LEASE)
    Notice.objects.filter(pk__in=ids).update(letter=letter)
    enqueue("workers.notices.send", letter.pk, letter.attempts)
    return True


def _allowed(rows: "QuerySet[Notice]") -> "QuerySet[Notice]":
    """The notices that the person may still read, in workspaces of theirs, and still wants by mail."""
    mine = Membership.objects.filter(user=OuterRef("user"), workspace=OuterRef("workspace"), role__in=READERS)
    wanted = Q(user__notice_settings__mail=Mails.ALL)
    wanted |= Q(user__notice_settings__mail=Mails.TROUBLE, event__in=words.TROUBLE)
    return rows.filter(Exists(mine), wanted, user__is_active=True)


def send(letter_id: int, attempt: int) -> None:
    """Sends the letter if it still waits for this attempt, and stores the result."""
    now = timezone.now()
    waiting = Letter.objects.filter(pk=letter_id, state=State.WAITING, attempts=attempt)
    if not waiting.update(state=State.SENDING, attempts=attempt + 1, next_try_at=now + LEASE):
        return
    letter = Letter.objects.select_related("user").get(pk=letter_id)
    rows = list(_allowed(letter.notices.all()).select_related("workspace").order_by("-id"))
    why = queries.no_mail(letter.user) or ("" if rows else "You may no longer get this by mail")
    if why:
        return _settle(letter, State.FAILED, why)
    try:
        mail.send(letter.user.email, subject(rows), text(letter.user, rows), _headers(letter))
    except mail.NotSent as error:
        over = error.for_good or now - letter.created_at > GIVE_UP_AFTER
        return _settle(letter, State.FAILED if over else State.WAITING, error.message)
    return _settle(letter, State.SENT, "")


def _settle(letter: Letter, state: Letter.State, error: str) -> None:
    """Stores the result, unless the lease ran out meanwhile and another attempt has started."""
    now = timezone.now()
    pause = min(FIRST_PAUSE * 2 ** min(letter.attempts - 1, 10), LONGEST_PAUSE)
    Letter.objects.filter(pk=letter.pk, state=State.SENDING, attempts=letter.attempts).update(
        state=state, error=error, next_try_at=now + pause, sent_at=now if state == State.SENT else None
    )


def take_up() -> int:
    """One round of upkeep: queues due letters, also those of a lost task or worker. Returns the number."""
    now = timezone.now()
    open_ones = Letter.objects.filter(state__in=(State.WAITING, State.SENDING))
    open_ones.filter(next_try_at__gt=now + 2 * LONGEST_PAUSE).update(next_try_at=now)  # the clock went back
    open_ones.filter(state=State.SENDING, next_try_at__lt=now).update(
        state=State.WAITING, error="The worker died while sending. It is not known whether the message arrived."
    )
    due = Letter.objects.filter(state=State.WAITING, next_try_at__lte=now).order_by("next_try_at")
    rows = list(due.values_list("pk", "attempts")[:AT_ONCE])
    with transaction.atomic():
        for pk, attempts in rows:
            # not offered again in the next round: with a busy queue that would only make it longer
            Letter.objects.filter(pk=pk, state=State.WAITING, attempts=attempts).update(next_try_at=now + LEASE)
            enqueue("workers.notices.send", pk, attempts)
    return len(rows)


def subject(rows: Sequence[Notice]) -> str:
    lines = words.folded(rows)
    first = next((line for line in lines if line.kind.trouble), lines[0])
    more = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
    return " ".join(f"{NAME}: {first.title}{more}".split())


def text(user: User, rows: Sequence[Notice]) -> str:
    """The mail as plain text, failures first, each line with its page."""
    base, lines = public_url(), words.folded(rows)
    lines.sort(key=lambda line: not line.kind.trouble)
    several = len({row.workspace_id for row in rows}) > 1
    parts = []
    for line in lines[:MOST_LINES]:
        where = f" ({line.newest.workspace})" if several else ""
        parts.append("\n".join(filter(None, (f"{line.title}{where}", line.text, f"{base}{line.href}"))))
    if left := len(lines) - MOST_LINES:
        parts += [f"{with_noun(left, 'notices')} more: {base}/notices"] if left > 0 else []
    end = f"You watch this, or you launched it. To get fewer mails or none: {base}/settings/notices#mail"
    return "\n\n".join([f"Hello {user}," if user.name else "Hello,", *parts, end]) + "\n"


def _headers(letter: Letter) -> dict[str, str]:
    host = public_url().partition("://")[2].partition("/")[0].partition(":")[0] or "localhost"
    return {
        "Message-ID": f"<notices.{letter.message_id}@{host}>",
        "List-Unsubscribe": f"<{public_url()}/settings/notices>",
        "Auto-Submitted": "auto-generated",  # nobody's absence answers it
    }
