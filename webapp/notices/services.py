"""Changes that people make to their notices and watches, and the deletion of old notices."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core import broadcast
from webapp.core.problems import Conflict, Invalid

from . import queries
from .dispatch import group
from .models import FIELDS, Letter, Mails, Notice, NoticeSettings, Watch

MOST_WATCHES = 2_000
KEPT_READ, KEPT = timedelta(days=30), timedelta(days=90)


@transaction.atomic
def watch(membership: Membership, subject: queries.Watchable, on: bool) -> None:
    """Starts or ends this person's watch. The same again changes nothing. Raises Conflict at one too many."""
    mine = Watch.objects.filter(user_id=membership.user_id)
    field = FIELDS[queries.kind_of(subject)]
    if on and not mine.filter(**{field: subject.pk}).exists() and mine.count() >= MOST_WATCHES:
        raise Conflict(f"You already watch {MOST_WATCHES:,} things. Stop watching some first.", "too_many_watches")
    about: dict[str, Any] = {field: subject}
    Watch.objects.update_or_create(user_id=membership.user_id, **about, defaults={"on": on})


@transaction.atomic
def mark_read(membership: Membership, ids: Sequence[int] | None = None) -> int:
    """Marks notices of this person in this workspace as read, None for all. Returns how many were unread; unknown ids and those of other
    people change nothing."""
    rows = queries.notices(membership, unread=True)
    changed = (rows if ids is None else rows.filter(pk__in=ids)).update(read_at=timezone.now())
    if changed:
        told: dict[str, object] = {"type": "unread", "unread": queries.unread(membership)}
        broadcast.send(group(membership.workspace_id, membership.user_id), told)
    return changed


def change_settings(membership: Membership, *, own: bool | None = None, mails: str | None = None) -> NoticeSettings:
    """Changes how this person gets notices, in every workspace; None leaves a value as it is. Raises Invalid at `mail` if there can be
    none."""
    row = queries.settings(membership.user_id)
    row.own = row.own if own is None else own
    if mails is not None and mails not in Mails.values:
        raise Invalid("This choice is not known.", {"mail": f"must be one of {', '.join(Mails.values)}"})
    if mails not in (None, Mails.NEVER, row.mail) and (why := queries.no_mail(membership.user)):
        raise Invalid("Mail cannot be switched on.", {"mail": why})
    row.mail = Mails(row.mail if mails is None else mails)
    with transaction.atomic():
        NoticeSettings.objects.update_or_create(user_id=membership.user_id, defaults={"own": row.own, "mail": row.mail})
        if row.mail == Mails.NEVER:
            Notice.objects.filter(user_id=membership.user_id, mail=True).update(mail=False)
    return row


def trim() -> int:
    """Deletes notices that were read a month ago, all that are three months old, and letters a month old. Returns the number of notices."""
    now = timezone.now()
    old = Q(created_at__lt=now - KEPT) | Q(read_at__lt=now - KEPT_READ)
    deleted, _ = Notice.objects.filter(old).delete()
    over = Letter.objects.filter(state__in=(Letter.State.SENT, Letter.State.FAILED))
    over.filter(created_at__lt=now - KEPT_READ).delete()
    return deleted
