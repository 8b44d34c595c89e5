"""Hands work to the queue by task name, so that the web side never imports a worker."""

import logging

from django.db import transaction

from webapp.celery import REQUEST_ID, app

from .logs import asked_by

logger = logging.getLogger(__name__)


def enqueue(name: str, *args: object) -> None:
    """Sends task `name` once the current transaction is committed: a worker never looks for a row it cannot see yet.

    A broker that is away does not undo the change: the failure is logged, and `workers.upkeep` finds what still
    waits. Whoever enqueues therefore leaves a row in a state that upkeep recognises.
    """
    transaction.on_commit(lambda: _send(name, args))


def _send(name: str, args: tuple[object, ...]) -> None:
    if app.conf.task_always_eager:
        app.tasks[name].apply(args=args, throw=True, headers=_headers())
        return
    try:
        app.send_task(name, args=args, retry=False, headers=_headers())
    except Exception:  # any transport's error: kombu does not unify them
        logger.exception("cannot queue %s%r; upkeep will pick it up", name, args)


def _headers() -> dict[str, str]:
    """The task is logged under the id of the request that asked for it."""
    return {REQUEST_ID: asked} if (asked := asked_by()) else {}
