"""An event loop on a thread of its own, beside a thread that keeps the database connection."""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
# While one thread computes, the other waits this long for its turn after every system call, and the loop makes several per
# request: with Python's own 5 ms the calls stand still for as long as prompts are rendered or verdicts are packed.
TURN_S = 0.0002
_Job = tuple["Future[Any]", Callable[[], Any]]


class _CallingThread(Executor):
    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self.jobs.put((future, lambda: fn(*args, **kwargs)))
        return future

    def serve(self) -> None:
        while (job := self.jobs.get()) is not None:
            future, function = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)


def run_beside(main: Callable[[Executor], Coroutine[Any, Any, T]]) -> T:
    """Runs `main` in an event loop on another thread. `main` gets an executor, whose functions run on this thread.

    So the loop never waits for the database, and the database sees only one thread and one connection, those of the caller. If this
    thread is interrupted, the loop is cancelled before the interruption is passed on.
    """
    here = _CallingThread()
    result: Future[T] = Future()
    task: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def started() -> T:
        current = asyncio.current_task()
        if current is not None:
            task.append((asyncio.get_running_loop(), current))
        return await main(here)

    def loop() -> None:
        try:
            result.set_result(asyncio.run(started()))
        except BaseException as error:  # every exception belongs to the thread that waits
            result.set_exception(error)
        finally:
            here.jobs.put(None)

    thread = threading.Thread(target=loop, name="judge calls", daemon=True)
    turn = sys.getswitchinterval()
    sys.setswitchinterval(TURN_S)
    thread.start()
    try:
        here.serve()
    except BaseException:
        for running, current in task:
            running.call_soon_threadsafe(current.cancel)
        raise
    finally:
        sys.setswitchinterval(turn)
    thread.join()
    return result.result()
