"""Work that one process at a time may do: advisory locks of Postgres, each kind of work under a number of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from django.db import connection
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL


class Work(IntEnum):
    """Namespaces: work of two kinds on rows of the same id does not get in each other's way."""

    IMPORT = 7301
    DATASET_NAME = 7302
    CURATION = 7303
    TASKS = 7304
    EVALUATION = 7305
    TRIAL = 7306
    PROJECT_JOB = 7307
    START_RUN = 7308
    COLLECT = 7309
    RUN_QUESTIONS = 7310
    TRIED_SCORE = 7312
    PROJECT_COMPLETE = 7313
    MODEL_TRIAL = 7315
    DELETE_DATASET = 7314
    AUDIT_SEAL = 7320
    AUDIT_SYSLOG = 7324
    BACKUP = 7321
    BACKUP_FILES = 7322
    PERSONAL_DATA = 7323
    DEMO = 7330
    LEVELS = 7316
    WORDS = 7317
    CHECKPOINTS = 7318
    FAMILIES = 7319


def until_commit(work: Work, key: int = 0) -> None:
    """Waits until no other transaction does this work, and keeps others out until this one ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [work, key % 2**31])


@contextmanager
def exclusive(work: Work, key: int, *, wait: bool = False) -> Iterator[bool]:
    """Whether this connection is the only one at that work until the block ends; with `wait`, once it is.

    The lock goes with the connection, so it tells a dead worker from a slow one better than any clock. Of the key, the
    last 31 bits count.
    """
    place = [work, key % 2**31]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg{'' if wait else '_try'}_advisory_lock(%s, %s)", place)
        ours = wait or bool(cursor.fetchone()[0])
    try:
        yield ours
    finally:
        # in a broken transaction no statement runs; the lock goes with the connection then
        if ours and connection.is_usable() and not connection.needs_rollback:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", place)


def is_held_by(work: Work, key: int, pid: int) -> RawSQL:
    """A condition: the connection of that server process is the one that holds the work exclusively."""
    lock = "locktype = 'advisory' AND objsubid = 2 AND granted AND classid = %s AND objid = %s AND pid = %s"
    return RawSQL(f"EXISTS (SELECT FROM pg_locks WHERE {lock})", [work, key % 2**31, pid], BooleanField())  # noqa: S611


@contextmanager
def shared(work: Work, key: int) -> Iterator[None]:
    """Waits until nobody holds that work exclusively, and keeps them out until the block ends; others may share it."""
    place = [work, key % 2**31]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock_shared(%s, %s)", place)
    try:
        yield
    finally:
        if connection.is_usable() and not connection.needs_rollback:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock_shared(%s, %s)", place)
