"""The Celery app. Workers are named as strings: the web side never imports them."""

import os
import pkgutil
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import task_postrun, task_prerun

from webapp.core.logs import current_request_id

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

REQUEST_ID = "touchstone_request_id"  # the header of a task that names who asked for it
WORKERS = Path(__file__).resolve().parent.parent / "workers"

app = Celery("touchstone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.include = sorted(f"workers.{module.name}" for module in pkgutil.iter_modules([str(WORKERS)]))


@task_prerun.connect  # type: ignore[untyped-decorator]  # celery has no types
def _begin_id(task_id: str, task: Any, **_: Any) -> None:
    """All that the task logs carries the id of the request that asked for it; what beat asks for carries its own."""
    headers = task.request.headers or {}  # of a task that is carried out at once; those of a message become attributes
    asked = getattr(task.request, REQUEST_ID, None) or headers.get(REQUEST_ID) or task_id[:12]
    task.request.log_token = current_request_id.set(asked)


@task_postrun.connect  # type: ignore[untyped-decorator]
def _end_id(task: Any, **_: Any) -> None:
    current_request_id.reset(task.request.log_token)
