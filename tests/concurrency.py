"""Runs calls that start at the same moment, each in a thread with its own connection."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connection, connections

from webapp.core.problems import Conflict

THREADS = 40


def concurrently(calls: Iterable[Callable], threads: int = THREADS) -> list:
    """Runs the calls in threads that start together. Returns their results, with a Conflict in the place of a call that raised one."""
    listed = list(calls)
    barrier = Barrier(min(threads, len(listed)))
    with ThreadPoolExecutor(min(threads, len(listed)), initializer=barrier.wait) as pool:
        return list(pool.map(outcome, listed))


def outcome(call: Callable):
    """Runs a call in its thread, and closes the connection. Returns the result, or the Conflict that was raised."""
    try:
        return call()
    except Conflict as conflict:
        return conflict
    finally:
        connections.close_all()


def somebody_waits() -> bool:
    """Whether somebody waits for a lock of this connection. Other tests of this server wait for locks too, so those do not count."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        return cursor.fetchone()[0]
