"""Jobs that a worker carries out on a row: claimed, reported on, ended once, and taken up again if their worker was lost.

Who has claimed a job holds its advisory lock, which goes with the connection. A worker writes by an UPDATE that counts only while the row
is open and that connection still holds the lock. So one worker has a job, an end is final, and who was cut off and comes back changes
nothing of its successor's.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any, Generic, TypeVar

from django.db import connection, transaction
from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from ..database import locks
from ..health import DATABASE_AWAY
from ..problems import Problem
from ..tasks import UNHEARD, UNTAKEN, enqueue, silent

logger = logging.getLogger(__name__)
BROKE = "An error happened on the server; its log says more."
TELL_EVERY_S = 0.5
STOP_LOOK_S = 1.0
OPEN = ("queued", "running")
KINDS: "list[JobKind[Any]]" = []
Row = TypeVar("Row", bound=Model)


class JobLost(Exception):
    """The job is over, gone, or another worker's: the worker that raises this leaves it as it is."""


class Later(Exception):
    """The work waits for something that is not there yet: it is begun again in a while, and holds no worker meanwhile."""


NOT_ITS_FAULT = (JobLost, Later, *DATABASE_AWAY)


@dataclass(frozen=True)
class JobKind(Generic[Row]):
    """One kind of job by the parts that all kinds have: `rows` with `seen_at`, the lock, and the task that carries a job out by its id.

    `begun` is what a claim writes. `only`: the key of the lock, if only one job of the kind may be at work at a time.
    `again` False: a job whose worker was lost is not begun again.
    """

    rows: QuerySet[Row]
    work: locks.Work
    task: str
    tell: Callable[[Row], object] = lambda job: None
    open: Q = Q(state__in=OPEN)
    queued: Q = Q(state="queued")
    begun: Mapping[str, object] = field(default_factory=lambda: {"state": "running"})
    only: int | None = None
    again: bool = True

    def __post_init__(self) -> None:
        KINDS.append(self)

    @contextmanager
    def claimed(self, pk: int, **fields: object) -> Iterator[Row | None]:
        """The job, with `fields` written; None if it is over or another worker has it. Who finds it lost goes away quietly."""
        with locks.exclusive(self.work, self._key(pk)) as ours:
            rows = self.rows.filter(self.open, pk=pk)
            job = rows.first() if ours and rows.update(seen_at=timezone.now(), **self.begun, **fields) else None
            try:
                if job is not None:
                    vars(job)["claimed_by"] = connection.connection.info.backend_pid
                    self.tell(job)
                yield job
            except JobLost:
                logger.warning("%s %s was lost to this worker", type(job).__name__, pk)

    def held(self, job: Row) -> QuerySet[Row]:
        """The row, for an UPDATE: nothing if the job is over, or was claimed by this worker and is another's by now."""
        pid = vars(job).get("claimed_by")
        ours = [] if pid is None else [locks.is_held_by(self.work, self._key(job.pk), pid)]
        return self.rows.filter(self.open, *ours, pk=job.pk)

    def save(self, job: Row, *names: str, **values: object) -> None:
        """Saves these fields with a sign of life and tells open pages; the write that closes the row is the job's end. Raises JobLost."""
        for name, value in {"seen_at": timezone.now(), **values}.items():
            setattr(job, name, value)
        if not self.held(job).update(**{name: getattr(job, name) for name in ("seen_at", *names, *values)}):
            raise JobLost
        self.tell(job)

    def stop_asked(self, job: Row) -> Callable[[], bool]:
        """A function that tells whether somebody wants the job to end; it asks the database once a second, however often it is called."""
        due, wanted = Throttle(STOP_LOOK_S), False

        def look() -> bool:
            nonlocal wanted
            wanted = wanted or (due() and self.rows.filter(Q(stopping=True), pk=job.pk).exists())
            return wanted

        return look

    def ask_to_stop(self, pk: int, **end: object) -> bool:
        """A waiting job ends at once, with these fields; one under way is told. False: it is over."""
        row = self.rows.filter(self.open, pk=pk)
        return bool(row.filter(self.queued).update(**end) or row.update(stopping=True))

    def end_lost(self, quiet: timedelta, **end: object) -> int:
        """Ends jobs that a dead worker left under way, of a kind that runs one job at a time; returns how many."""
        with locks.exclusive(self.work, self._key(0)) as ours:
            lost = self.rows.filter(self.open, ~self.queued, silent("seen_at", quiet))
            return lost.update(**end) if ours else 0

    def take_up_lost(self) -> int:
        """Queues again what no worker has told of for a while; returns how many. A worker that is merely slow keeps its job: it has
        the lock, and perhaps the row, whose transaction nobody waits for here."""
        late = self.queued & silent("seen_at", UNTAKEN)
        if self.again:
            late |= ~self.queued & silent("seen_at", UNHEARD)
        with transaction.atomic():
            lost = self.rows.select_related(None).filter(self.open, late).select_for_update(skip_locked=True)
            found = list(lost.values_list("pk", flat=True))
            self.rows.filter(pk__in=found).update(seen_at=timezone.now())
            for pk in found:
                enqueue(self.task, pk)
        return len(found)

    def _key(self, pk: int) -> int:
        return pk if self.only is None else self.only


def take_up_lost() -> int:
    """Takes up lost jobs of all kinds; called by beat."""
    return sum(kind.take_up_lost() for kind in KINDS)


class Throttle:
    """True at most once in this many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._last = seconds, 0.0

    def __call__(self) -> bool:
        if monotonic() - self._last < self._seconds:
            return False
        self._last = monotonic()
        return True


class JobReport(Generic[Row]):
    """Reports a job's progress, a few times a second at most. `at` raises `stopped`, if given, once somebody wants the end."""

    def __init__(self, kind: JobKind[Row], job: Row, stopped: Exception | None = None) -> None:
        self.job = job
        self._kind, self._stopped = kind, stopped
        self._due, self._stop_asked = Throttle(TELL_EVERY_S), kind.stop_asked(job)

    def at(self, done: int, total: int) -> None:
        vars(self.job).update(done=done, total=total)
        if self._due():
            self._kind.save(self.job, "done", "total")
        if self._stopped and self._stop_asked():
            raise self._stopped


def failure(
    work: Callable[..., object],
    job: Row,
    *given: object,
    known: tuple[type[Exception], ...] = (Problem,),
    words: Callable[[Any], str] = str,
) -> str | None:
    """Does the work; what broke, for people to read, or None. A mistake of ours ends the job too: it would come again for ever.

    Raises errors that the job did not cause: it stays open and is taken up again.
    """
    try:
        work(job, *given)
    except known as problem:
        return words(problem)
    except NOT_ITS_FAULT:
        raise
    except Exception:
        logger.exception("%s %s failed", type(job).__name__, job.pk)
        return BROKE
    return None
