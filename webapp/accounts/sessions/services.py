"""Records of sessions, and how sessions end."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from webapp.core.auditing import audit

from ..audit_everywhere import record_everywhere
from ..models import Membership, SignedIn, User

UNATTENDED = "unattended"  # a header (X-Unattended), or a cookie if the page cannot send a header
NOTED_EVERY = timedelta(minutes=1)
LONGEST_AGENT = 300
CLEARED_AT_ONCE = 1000


def began(sender: object, request: HttpRequest, user: AbstractBaseUser, **_: object) -> None:
    """Receiver of Django's `user_logged_in`: notes where the person has signed in."""
    _note(request, user.pk, anew=True)
    oldest = timezone.now() - timedelta(hours=settings.SESSION_HOURS)
    SignedIn.objects.filter(user_id=user.pk, created_at__lt=oldest).delete()  # which open nothing


def is_sent_by_page(request: HttpRequest) -> bool:
    """Whether the request says that the page sent it by itself. A false claim only ends the person's own session sooner."""
    return f"X-{UNATTENDED.title()}" in request.headers or UNATTENDED in request.COOKIES


def note_use(request: HttpRequest) -> None:
    """Notes to the minute that the session of a signed-in person was used: one write a minute, not one a request."""
    last = getattr(request.session, "used_at", None)
    if last is not None and is_sent_by_page(request):
        return
    if last is None or timezone.now() - last > NOTED_EVERY:
        _note(request, request.user.pk)


def _note(request: HttpRequest, user_id: Any, anew: bool = False) -> None:
    now = timezone.now()
    row = SignedIn(
        session_key=request.session.session_key or "",
        user_id=user_id,
        created_at=now,
        last_used_at=now,
        address=audit.origin.get().address[:45],
        agent=request.META.get("HTTP_USER_AGENT", "")[:LONGEST_AGENT].replace("\0", ""),
    )
    changed = ["last_used_at", "address", "agent", *(("user", "created_at") if anew else ())]
    SignedIn.objects.bulk_create([row], update_conflicts=True, unique_fields=["session_key"], update_fields=changed)
    request.session.used_at = now  # type: ignore[attr-defined]


def end(rows: QuerySet[SignedIn]) -> int:
    """Signs these browsers out; their open connections close with their next message. Returns how many there were."""
    keys = list(rows.values_list("session_key", flat=True))
    Session.objects.filter(session_key__in=keys).delete()
    return SignedIn.objects.filter(session_key__in=keys).delete()[0]


def clear_expired() -> int:
    """Deletes sessions that have ended, `CLEARED_AT_ONCE` at a time, so that no statement holds many rows. Returns how many."""
    cleared, expired = 0, Session.objects.filter(expire_date__lt=timezone.now())
    while keys := list(expired.values_list("session_key", flat=True)[:CLEARED_AT_ONCE]):
        SignedIn.objects.filter(session_key__in=keys).delete()
        cleared += Session.objects.filter(session_key__in=keys).delete()[0]
    return cleared


@transaction.atomic
def end_sessions(user: User, rows: QuerySet[SignedIn]) -> int:
    """Signs out these browsers of the person, at their request. Returns how many there were."""
    count = end(rows.filter(user=user))
    if count:
        record_session(user, "session.ended", sessions=count)
    return count


@transaction.atomic
def end_sessions_of(administrator: User, person: User) -> int:
    """Signs a person out everywhere, by an administrator. The logs of the workspaces of both record it."""
    count = end(SignedIn.objects.filter(user=person))
    both = Membership.objects.filter(user__in=(administrator, person)).order_by("workspace_id", "id")
    for membership in both.distinct("workspace_id").select_related("workspace"):
        audit.record(membership, administrator, "session.ended_by_administrator", person, sessions=count)
    return count


def record_session(user: User, action: str, **detail: object) -> None:
    """Records `session.started` and the like in the log of each workspace of the person, because the session opens all of them."""
    record_everywhere(user, user, action, user, **detail)
