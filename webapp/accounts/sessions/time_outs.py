"""Computes the length of a session: as long as the installation allows, or as the strictest workspace of the person asks.

A workspace may be stricter than the installation (SESSION_IDLE_HOURS, SESSION_HOURS), never looser.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Min

from webapp.core.auditing import audit
from webapp.core.problems import Invalid

from ..models import Membership, User, Workspace

SHORTEST_IDLE = 5  # minutes; a page reports its use once a minute
SHORTEST = 15


@dataclass(frozen=True)
class TimeOuts:
    """The time without use, and the time since its start, after which a session opens nothing."""

    longest: timedelta
    idle: timedelta


def installation() -> TimeOuts:
    return TimeOuts(timedelta(hours=settings.SESSION_HOURS), timedelta(hours=settings.SESSION_IDLE_HOURS))


def strictest(session_minutes: int | None, idle_minutes: int | None) -> TimeOuts:
    """The time-outs that hold if workspaces ask for this many minutes; None: no workspace asks."""
    whole = installation()
    longest = whole.longest if session_minutes is None else timedelta(minutes=session_minutes)
    idle = whole.idle if idle_minutes is None else timedelta(minutes=idle_minutes)
    return TimeOuts(min(longest, whole.longest), min(idle, whole.idle))


def time_outs_of(user: User) -> TimeOuts:
    """The time-outs of the person's sessions."""
    asked = Workspace.objects.filter(memberships__user=user).aggregate(
        longest=Min("session_minutes"), idle=Min("idle_minutes")
    )
    return strictest(asked["longest"], asked["idle"])


@transaction.atomic
def change(membership: Membership, idle_minutes: int | None, session_minutes: int | None) -> Workspace:
    """Sets the time-outs of the workspace; None: no time-out of its own. The change holds at once, for all sessions of its people.

    Raises Invalid at `idle_minutes` or `session_minutes`.
    """
    whole = installation()
    wrong = {
        name: why
        for name, value, least, most in (
            ("idle_minutes", idle_minutes, SHORTEST_IDLE, whole.idle),
            ("session_minutes", session_minutes, SHORTEST, whole.longest),
        )
        if (why := _wrong(value, least, most))
    }
    if wrong:
        raise Invalid("These time-outs cannot be used.", wrong)
    values = {"idle_minutes": idle_minutes, "session_minutes": session_minutes}
    Workspace.objects.filter(pk=membership.workspace_id).update(**values)
    audit.record(membership, membership.user, "workspace.time_outs", membership.workspace, **values)
    membership.workspace.refresh_from_db(fields=list(values))
    return membership.workspace


def _wrong(value: int | None, least: int, most: timedelta) -> str:
    if value is None:
        return ""
    if value < least:
        return f"must be {least} minutes or more"
    if value > in_minutes(most):
        return f"must be at most {in_minutes(most)} minutes, the limit of the whole installation"
    return ""


def in_minutes(span: timedelta) -> int:
    return round(span.total_seconds() / 60)


def in_words(span: timedelta) -> str:
    """A span in words: 7 days, 36 hours, 30 minutes."""
    hours = span.total_seconds() / 3600
    for unit, size in (("day", 24.0), ("hour", 1.0)):
        if hours >= size and not hours % size:
            return f"{hours / size:g} {unit}" + ("" if hours == size else "s")
    return f"{hours * 60:g} minutes"
