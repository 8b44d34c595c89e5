"""A drill: the newest backup is restored as an installation beside this one, with its own database, and checked.

Without drills nobody knows whether the backups can be restored. A drill does all comparisons of `restore`, and opens pages. All writes
about drills are here: one is under way at a time, reports its progress, and ends if somebody asks.
"""

import logging
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import User
from webapp.core.background.jobs import BROKE, JobKind
from webapp.core.database import locks
from webapp.core.problems import Conflict, Problem
from webapp.core.tasks import enqueue
from webapp.localstack.postgres import Postgres

from . import alarm, manifest, queries, restoring
from .models import BackupDrill, Origin
from .problems import BackupProblem, Cancelled
from .store import ContentStore, open_store, passphrase_of

logger = logging.getLogger(__name__)
PREFIX = "drill-"
TELL_EVERY_S = 1.0
QUIET = timedelta(seconds=60)
DRILL = JobKind(
    BackupDrill.objects.all(),
    locks.Work.BACKUP,
    "workers.backups.drill",
    open=Q(open=True),
    queued=Q(started_at=None),
    begun={},
    only=1,
    again=False,
)


def start(folder: str | Path | None, origin: Origin, by: User | None = None, *, queue: bool = False) -> BackupDrill:
    """A drill that waits for `carry_out`; with `queue`, a worker does it. Raises Conflict during another, BackupProblem without a place."""
    if folder is None:
        raise BackupProblem("BACKUP_FOLDER is not set, so there is no backup to try.")
    end_lost(timedelta(0))
    try:
        with transaction.atomic():
            drill = BackupDrill.objects.create(folder=str(folder), origin=origin, created_by=by, open=True)
            if queue:
                enqueue("workers.backups.drill", drill.pk)
    except IntegrityError:
        raise Conflict("A drill is under way already.", code="under_way") from None
    return drill


def carry_out(pk: int, key_file: Path | None, say: restoring.Say = lambda words: None) -> None:
    """Restores the newest backup, records the result and removes the copy. Administrators are told of a failure."""
    with DRILL.claimed(pk, started_at=timezone.now()) as drill:
        if drill is None:
            return
        _remove_leftovers()
        try:
            with _Telling(drill, say) as telling:
                _restore(drill, key_file, telling)
            drill.passed = True
        except Cancelled:
            drill.problem = "Somebody cancelled it."
        except Problem as problem:
            drill.passed, drill.problem = False, str(problem)[:1000]
        except Exception:
            logger.exception("%s failed", drill)
            drill.passed, drill.problem = False, BROKE
        finally:
            _remove_leftovers()
            now = timezone.now()
            drill.seconds = round((now - (drill.started_at or now)).total_seconds(), 1)
            DRILL.save(drill, "passed", "problem", "seconds", "name", "rows", "files", open=None, finished_at=now)
        if drill.passed is False:
            told = f"{drill.folder}, {drill.name or 'no backup'}: {drill.problem}"
            alarm.alert_administrators("A drill of the backup has failed", told)


def _restore(drill: BackupDrill, key_file: Path | None, telling: "_Telling") -> None:
    store = open_store(drill.folder, passphrase_of(key_file))
    with store.reading():
        drill.name = manifest.newest(store)
        DRILL.save(drill, "name")
        done = _try(store, drill.name, telling)
    drill.rows, drill.files = done.rows, done.files


def _try(store: ContentStore, name: str, telling: "_Telling") -> restoring.Restored:
    settings.VAR.mkdir(parents=True, exist_ok=True)
    into = Path(tempfile.mkdtemp(prefix=PREFIX, dir=settings.VAR))
    kept = manifest.read(store, name)
    done = restoring.restore(store, kept, into, say=telling.say, report=telling.at, look=True)
    for address, status in done.pages.items():
        telling.say(f"{address} answers {status}.")
    if bad := [f"{address} answers {status}" for address, status in done.pages.items() if status != 200]:
        raise BackupProblem(f"The restored installation has pages that do not open: {', '.join(bad)}.")
    return done


class _Telling:
    """The progress of a drill, written to its row once a second by a separate thread, which also checks whether somebody wants the end."""

    def __init__(self, drill: BackupDrill, say: restoring.Say) -> None:
        self._drill, self._say = drill, say
        self._over, self._unwanted = threading.Event(), threading.Event()
        self._step, self._done, self._total = "", 0, 0
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> "_Telling":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def say(self, words: str) -> None:
        self._step = words
        self._say(words)

    def at(self, done: int, total: int) -> None:
        """Raises Cancelled."""
        self._done, self._total = done, total
        if self._unwanted.is_set():
            raise Cancelled("Somebody cancelled this drill.")

    def _tell(self) -> None:
        row = DRILL.held(self._drill)
        try:
            while not self._over.wait(TELL_EVERY_S):
                with suppress(DatabaseError):  # away for a moment; the drill itself does not need it
                    now = timezone.now()
                    row.update(done=self._done, total=self._total, step=self._step[:200], seen_at=now)
                    if row.filter(stopping=True).exists():
                        self._unwanted.set()
        finally:
            connection.close()  # of this thread


def _remove_leftovers() -> None:
    """Removes leftovers, also of a drill that was killed. The database lies elsewhere if its user could not reach it below `var`."""
    for folder in settings.VAR.glob(f"{PREFIX}*"):
        with suppress(Exception):  # without the programs of a Postgres there is no database of one either
            if (root := Postgres(folder).root) != folder:
                shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def stop(drill: BackupDrill) -> None:
    """A waiting drill ends at once; one under way ends within seconds. Raises Conflict if it is over."""
    if not DRILL.ask_to_stop(drill.pk, open=None, finished_at=timezone.now(), problem="Somebody cancelled it."):
        raise Conflict("This drill is over.", code="no_such_move")


def end_lost(quiet: timedelta = QUIET) -> int:
    """Ends drills that a dead process left under way; returns how many. Such a drill has shown nothing about the backup."""
    return DRILL.end_lost(quiet, open=None, finished_at=timezone.now(), problem="Its process ended without a message.")


def look() -> None:
    """Called by beat every minute: ends lost drills, starts due ones."""
    end_lost()
    if settings.BACKUP_FOLDER is not None and is_due(timezone.now()):
        with suppress(Conflict):  # another was faster
            start(settings.BACKUP_FOLDER, Origin.SCHEDULE, queue=True)


def is_due(now: datetime) -> bool:
    """Whether the plan's hour has passed, and no planned drill was started on this day or the `drill_days` - 1 days before it."""
    plan = queries.plan()
    if plan.drill_days is None:
        return False
    hour = now.replace(hour=plan.drill_hour, minute=0, second=0, microsecond=0)
    last = hour if hour <= now else hour - timedelta(days=1)
    since = last - timedelta(days=plan.drill_days - 1)
    begun = BackupDrill.objects.filter(origin=Origin.SCHEDULE, created_at__gte=since)
    return last >= plan.changed_at and not begun.exists()


@contextmanager
def none_under_way() -> Iterator[None]:
    """Keeps old backups while a drill is under way: raises BackupProblem then."""
    with locks.exclusive(locks.Work.BACKUP, 1) as ours:
        if not ours:
            raise BackupProblem("a drill reads a backup; they are removed the next time.")
        yield
