"""What comes of calls that start in the same moment, each in a thread with a connection of its own."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connections

from webapp.core.problems import Conflict

THREADS = 40


def at_once(calls: Iterable[Callable], threads: int = THREADS) -> list:
    """Runs the calls in threads that start together; their results, a Conflict where one was raised."""
    listed = list(calls)
    barrier = Barrier(min(threads, len(listed)))
    with ThreadPoolExecutor(min(threads, len(listed)), initializer=barrier.wait) as pool:
        return list(pool.map(outcome, listed))


def outcome(call: Callable):
    """In a thread: what comes of the call, a Conflict where one was raised; its connection is closed."""
    try:
        return call()
    except Conflict as conflict:
        return conflict
    finally:
        connections.close_all()
