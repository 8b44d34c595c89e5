"""Parts of one work in processes that share the memory of what was read before. Imports no torch.

A small model keeps one core busy with Python while the others wait. Several processes use them. Each is a copy of this process
(fork), so what this process has loaded is in memory once, until somebody writes to it.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

_PDEATHSIG = 1  # sys/prctl.h
_STOPS = (signal.SIGTERM, signal.SIGINT)

Work = Callable[[], int]


def in_processes(works: Sequence[Work]) -> int:
    """Do each work in its own process, a single one in this process; returns the greatest of their results, which are exit statuses.

    SIGTERM and SIGINT are passed on as SIGTERM. If one process is killed, the others are killed, too: the work was one process's to
    its caller, and it is lost as a whole. They do not outlive this process either. To be called from the main thread, before any other thread
    is there: threads are not copied, and what they hold locked would stay locked.
    """
    if len(works) == 1:
        return works[0]()
    context, parent = multiprocessing.get_context("fork"), os.getpid()
    processes = [context.Process(target=partial(_alone, work, parent)) for work in works]

    def pass_on(*_: object) -> None:
        for process in processes:
            process.terminate()

    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)  # until all are there whom a stop is passed on to
    try:
        for process in processes:
            process.start()
        before = {number: signal.signal(number, pass_on) for number in _STOPS}
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    try:
        return _awaited(processes)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _alone(work: Work, parent: int) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the line above took effect
        os._exit(1)
    sys.exit(work())


def _awaited(processes: Sequence[BaseProcess]) -> int:
    alive = list(processes)
    while alive:
        wait([process.sentinel for process in alive])
        ended = [process for process in alive if process.exitcode is not None]
        # not asked again: one that ends in this moment would be in neither list, and the others would continue for ever
        alive = [process for process in alive if process not in ended]
        for process in ended:
            if (process.exitcode or 0) < 0 and alive:
                print(
                    f"process {process.pid} was killed by signal {-(process.exitcode or 0)}; the others end, too",
                    file=sys.stderr,
                )
                for other in alive:
                    other.kill()
    return max(_status(process) for process in processes)


def _status(process: BaseProcess) -> int:
    code = process.exitcode
    return code if code is not None and code >= 0 else 1
