"""A drill: the newest backup becomes an installation beside this one, with a database of its own, and is looked at.

A backup that nobody has restored is a hope. All that `restore` compares is compared, and pages are opened.
"""

import shutil
import tempfile
import time
from pathlib import Path

from django.conf import settings

from webapp.core import locks
from webapp.core.problems import Conflict, Problem
from webapp.localstack.postgres import Postgres

from . import manifest, restoring
from .models import BackupDrill
from .problems import BackupProblem
from .store import Store

PREFIX = "drill-"


def run(store: Store, say: restoring.Say = lambda words: None) -> BackupDrill:
    """Restores the newest backup of the store, notes what came of it and removes it again. Raises Conflict during another."""
    began, name, done, problem = time.monotonic(), "", None, ""
    with locks.alone(locks.Work.BACKUP, 1) as ours:
        if not ours:
            raise Conflict("Another drill is under way.", code="under_way")
        _remove_leftovers()
        try:
            with store.reading():
                name = manifest.newest(store)
                done = _try(store, name, say)
        except Problem as error:
            problem = str(error)
        finally:
            _remove_leftovers()
    return BackupDrill.objects.create(
        name=name,
        passed=not problem,
        problem=problem[:1000],
        rows=done.rows if done else None,
        files=done.files if done else None,
        seconds=round(time.monotonic() - began, 1),
    )


def _try(store: Store, name: str, say: restoring.Say) -> restoring.Restored:
    settings.VAR.mkdir(parents=True, exist_ok=True)
    into = Path(tempfile.mkdtemp(prefix=PREFIX, dir=settings.VAR))
    done = restoring.restore(store, manifest.read(store, name), into, say=say, look=True)
    for address, status in done.pages.items():
        say(f"{address} answers {status}.")
    if bad := [f"{address} answers {status}" for address, status in done.pages.items() if status != 200]:
        raise BackupProblem(f"The restored installation has pages that do not open: {', '.join(bad)}.")
    return done


def _remove_leftovers() -> None:
    """Also of a drill that was killed. A database that its user could not reach below `var` lies elsewhere."""
    for folder in settings.VAR.glob(f"{PREFIX}*"):
        root = Postgres(folder).root
        if root != folder:
            shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
