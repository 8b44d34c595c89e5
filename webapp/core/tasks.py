"""Hands work to the queue by task name, so that the web side never imports a worker."""

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from trainer import tracing
from webapp.celery import REQUEST_ID, app

from .monitoring.logs import asked_by

logger = logging.getLogger(__name__)
UNTAKEN = timedelta(seconds=120)  # queued for this long: its task was lost, or many are before it
UNHEARD = timedelta(seconds=30)  # who is at work tells of it every second or few; after this long the worker has died
AHEAD = timedelta(minutes=5)  # a time that lies so far ahead was written before the clock went back, and says nothing


def enqueue(name: str, *args: object) -> None:
    """Sends task `name` once the current transaction is committed: a worker never looks for a row it cannot see yet.

    A broker that is away does not undo the change: the failure is logged, and `workers.upkeep` finds what still waits. Code that enqueues
    therefore leaves a row in a state that upkeep recognises.
    """
    transaction.on_commit(lambda: _send(name, args))


def silent(column: str, quiet: timedelta) -> Q:
    """Rows of whose time in `column` more than `quiet` has gone by, or that lies ahead: see AHEAD."""
    now = timezone.now()
    return Q(**{f"{column}__lt": now - quiet}) | written_ahead(column)


def written_ahead(column: str) -> Q:
    """Rows that were written before the clock went back."""
    return Q(**{f"{column}__gt": timezone.now() + AHEAD})


def _send(name: str, args: tuple[object, ...]) -> None:
    if app.conf.task_always_eager:
        app.tasks[name].apply(args=args, throw=True, headers=_headers())
        return
    try:
        app.send_task(name, args=args, retry=False, headers=_headers())
    except Exception:  # any transport's error: kombu does not unify them
        logger.exception("cannot queue %s%r; upkeep will pick it up", name, args)


def _headers() -> dict[str, str]:
    """The task is logged under the id of the request that asked for it, and belongs to its trace."""
    return ({REQUEST_ID: asked} if (asked := asked_by()) else {}) | tracing.carried()
