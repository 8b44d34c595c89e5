"""Workers in separate processes, on the database of the test, so that a test can kill them."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.models import Model

from tests import fork_server
from webapp.core.database import locks

ROOT = Path(__file__).parents[1]


def worker(code: str, job: Model, **options: Any) -> subprocess.Popen:
    """Runs `code` with the job's id as its argument, in a process forked from one that has loaded the product."""
    ours = {"DATABASE_URL": _url(), "DJANGO_SETTINGS_MODULE": "webapp.settings", "PYTHONPATH": str(ROOT)}
    command = [*fork_server.command("tests.run_text", fork_server.PRODUCT, **ours), code, str(job.pk)]
    return subprocess.Popen(command, env={**os.environ, **ours}, cwd=ROOT, **options)


def kill(process: subprocess.Popen, job: Model, work: locks.Work) -> None:
    """Returns after the server has noticed. The job is read again."""
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the worker ended before it could be killed"
    with locks.exclusive(work, job.pk, wait=True):
        job.refresh_from_db()


def _url() -> str:
    settings = connection.settings_dict
    place = f"{settings['USER']}:{settings['PASSWORD'] or ''}@{settings['HOST'] or ''}:{settings['PORT'] or ''}"
    if settings["HOST"].startswith("/"):
        return f"postgresql://{settings['USER']}@/{settings['NAME']}?host={settings['HOST']}"
    return f"postgresql://{place}/{settings['NAME']}"
