"""The Celery app. Workers are named as strings: the web side never imports them."""

import os
import pkgutil
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import task_failure, task_postrun, task_prerun, worker_init

from trainer import tracing
from webapp.request_id import current_request_id

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

REQUEST_ID = "touchstone_request_id"  # the header of a task that names the request that asked for it
WORKERS = Path(__file__).resolve().parent.parent / "workers"

app = Celery("touchstone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.include = sorted(f"workers.{module.name}" for module in pkgutil.iter_modules([str(WORKERS)]))


@task_prerun.connect  # type: ignore[untyped-decorator]  # celery has no types
def _begin_id(task_id: str, task: Any, **_: Any) -> None:
    """Gives the task's logs the id of the request that asked for the task; a task of beat gets an id of its own."""
    asked = _header(task, REQUEST_ID) or task_id[:12]
    task.request.log_token = current_request_id.set(asked)
    parent = _header(task, tracing.PARENT)
    if parent:  # beat's rounds are not traces, because nobody asked for them
        told = {
            "messaging.system": "redis",
            "messaging.operation.type": "process",
            "messaging.message.id": task_id,
            "touchstone.request_id": asked,
        }
        task.request.span = tracing.span(f"process {task.name}", "CONSUMER", told, parent)
        task.request.told = task.request.span.__enter__()


@task_postrun.connect  # type: ignore[untyped-decorator]
def _end_id(task: Any, **_: Any) -> None:
    if span := getattr(task.request, "span", None):
        span.__exit__(None, None, None)
    current_request_id.reset(task.request.log_token)


@task_failure.connect  # type: ignore[untyped-decorator]
def _failed(sender: Any, exception: BaseException, **_: Any) -> None:
    if told := getattr(sender.request, "told", None):
        told.failed(type(exception).__name__)


@worker_init.connect  # type: ignore[untyped-decorator]
def _serve(**_: Any) -> None:
    tracing.serve("touchstone-worker")


def _header(task: Any, name: str) -> str | None:
    """A header of the task. A task that runs at once has headers; the headers of a message become attributes."""
    found: str | None = getattr(task.request, name, None) or (task.request.headers or {}).get(name)
    return found
