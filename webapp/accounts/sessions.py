"""Sessions in the database, read with a prepared statement: every page and every request of a browser begins with it.

Beside the session of somebody signed in stands when it began and when it was last used (`SignedIn`). It opens nothing once it
has been idle for too long, or too long after it began, whatever is done in it: see `time_outs`. What a page asks by itself,
with nobody at it, says so and is no use: `static/js/attention.js`.
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from webapp.core import audit, prepared

from . import time_outs
from .models import SignedIn, User

READ = """
    SELECT session.session_data, known.created_at, known.last_used_at, asked.longest, asked.idle
    FROM django_session AS session LEFT JOIN accounts_signedin AS known USING (session_key)
    LEFT JOIN LATERAL (
        SELECT min(workspace.session_minutes) AS longest, min(workspace.idle_minutes) AS idle
        FROM accounts_membership AS membership JOIN accounts_workspace AS workspace ON workspace.id = membership.workspace_id
        WHERE membership.user_id = known.user_id
    ) AS asked ON true
    WHERE session_key = %s AND expire_date > %s
"""
UNATTENDED = "unattended"  # a header (X-Unattended), or a cookie where a page cannot send one
NOTED_EVERY = timedelta(minutes=1)
LONGEST_AGENT = 300
CLEARED_AT_ONCE = 1000


class SessionStore(db.SessionStore):
    used_at: datetime | None = None  # when the session was last noted as used; None: nothing is known of it

    def load(self) -> dict[str, Any]:
        found = prepared.rows(READ, [self.session_key, timezone.now()])
        if found and not _over(*found[0][1:]):
            self.used_at = found[0][2]
            return self.decode(found[0][0])
        if found:  # idle for too long, or too old
            self.delete(self.session_key)
        self._session_key = None  # an unknown key is not taken over: whoever sent it did not get it from us
        return {}

    def cycle_key(self) -> None:
        """The session goes on under another key, and so does what is known of it."""
        known = SignedIn.objects.filter(session_key=self.session_key or "").first()
        super().cycle_key()
        if known is not None:
            known.pk, known.session_key = None, self.session_key or ""
            known.save(force_insert=True)

    def delete(self, session_key: str | None = None) -> None:
        SignedIn.objects.filter(session_key=session_key or self.session_key or "").delete()
        super().delete(session_key)


def _over(began: datetime | None, used: datetime | None, longest: int | None, idle: int | None) -> bool:
    now, allowed = timezone.now(), time_outs.strictest(longest, idle)
    return bool((began and now - began > allowed.longest) or (used and now - used > allowed.idle))


def began(sender: object, request: HttpRequest, user: AbstractBaseUser, **_: object) -> None:
    """Receiver of Django's `user_logged_in`: notes where the person has signed in."""
    _note(request, user.pk, anew=True)
    oldest = timezone.now() - timedelta(hours=settings.SESSION_HOURS)
    SignedIn.objects.filter(user_id=user.pk, created_at__lt=oldest).delete()  # which open nothing


def unattended(request: HttpRequest) -> bool:
    """Whether the page says that it asks by itself. Whoever lies about it only has their own session end the sooner."""
    return f"X-{UNATTENDED.title()}" in request.headers or UNATTENDED in request.COOKIES


def used(request: HttpRequest) -> None:
    """Notes that the session of somebody signed in was used, to the minute: one write a minute, not one a request."""
    last = getattr(request.session, "used_at", None)
    if last is not None and unattended(request):
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


def of(user: User) -> QuerySet[SignedIn]:
    """Where the person is signed in now, last used first."""
    now, allowed = timezone.now(), time_outs.of(user)
    return SignedIn.objects.filter(
        user=user,
        created_at__gt=now - allowed.longest,
        last_used_at__gt=now - allowed.idle,
        session_key__in=Session.objects.filter(expire_date__gt=now).values("session_key"),
    ).order_by("-last_used_at", "-pk")


def end(rows: QuerySet[SignedIn]) -> int:
    """Signs these browsers out; their open connections close with their next message. Returns how many there were."""
    keys = list(rows.values_list("session_key", flat=True))
    Session.objects.filter(session_key__in=keys).delete()
    return SignedIn.objects.filter(session_key__in=keys).delete()[0]


def clear_expired() -> int:
    """Deletes the sessions that are past their end, `CLEARED_AT_ONCE` at a time: no statement holds many rows. Returns how many."""
    cleared, expired = 0, Session.objects.filter(expire_date__lt=timezone.now())
    while keys := list(expired.values_list("session_key", flat=True)[:CLEARED_AT_ONCE]):
        SignedIn.objects.filter(session_key__in=keys).delete()
        cleared += Session.objects.filter(session_key__in=keys).delete()[0]
    return cleared
