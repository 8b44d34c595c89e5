"""The helpers of tests of races."""

from threading import Event, Thread

import pytest
from django.db import connection, transaction

from tests.concurrency import outcome, somebody_waits

pytestmark = pytest.mark.django_db(transaction=True)
LOCK = "SELECT pg_advisory_xact_lock(7)"


def lock(then=lambda: None) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK)
        then()


def waiters() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = 7")
        return cursor.fetchone()[0]


def test_only_who_waits_for_this_connection_counts():
    held, over = Event(), Event()
    others = [Thread(target=outcome, args=(lambda: lock(lambda: (held.set(), over.wait())),))]
    others[0].start()
    held.wait()
    others.append(Thread(target=outcome, args=(lock,)))
    others[1].start()
    while not waiters():
        pass
    assert not somebody_waits(), "two others are no business of ours"
    over.set()
    for other in others:
        other.join()

    def theirs() -> None:
        waits = Thread(target=outcome, args=(lock,))
        waits.start()
        while not somebody_waits():
            pass
        others.append(waits)

    lock(theirs)
    others[-1].join()
