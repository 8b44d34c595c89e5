"""Reads of sessions."""

from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

from ..models import SignedIn, User
from . import time_outs


def open_sessions(user: User) -> QuerySet[SignedIn]:
    """Sessions in which the person is signed in now, last used first."""
    now, allowed = timezone.now(), time_outs.time_outs_of(user)
    return SignedIn.objects.filter(
        user=user,
        created_at__gt=now - allowed.longest,
        last_used_at__gt=now - allowed.idle,
        session_key__in=Session.objects.filter(expire_date__gt=now).values("session_key"),
    ).order_by("-last_used_at", "-pk")
