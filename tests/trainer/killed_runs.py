"""Runs that SIGKILL ends, each in its own process, so that nothing is unwound, closed or flushed."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any

import torch

from tests import fork_server
from tests.timeouts import SECONDS

from .running import run


def run_until_killed(
    where: str,
    *given: Any,
    call: int = 0,
    step: int = 0,
    prepare: Callable[[], None] | None = None,
    **options: Any,
) -> None:
    """Calls `run(*given, **options)` in a process that is killed when it calls `where`, a `module:Class.method`, for the `call`-th time, or
    for the first time with `step`. `prepare` is called first, in that process.
    """
    told = pickle.dumps((torch.get_num_threads(), where, call, step, prepare, given, options))
    process = subprocess.Popen(fork_server.command(__name__), stdin=subprocess.PIPE)
    try:
        process.communicate(pickle.dumps(sys.path) + told, timeout=4 * SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL, f"it ended by itself: {process.returncode}"


def main() -> None:
    sys.path[:] = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the test; first, because the rest names modules of tests
    threads, where, call, step, prepare, given, options = pickle.load(sys.stdin.buffer)  # noqa: S301 - as above
    torch.set_num_threads(threads)  # as in the other process: with more threads, sums are added in another order
    if prepare is not None:
        prepare()
    module, _, path = where.partition(":")
    owner, _, name = path.partition(".")
    found = getattr(import_module(module), owner)
    setattr(found, name, _deadly(getattr(found, name), call, step))
    run(*given, **options)


def _deadly(original: Callable[..., Any], call: int, step: int) -> Callable[..., Any]:
    calls = count(1)

    def ends_here(self: Any, *given: Any, **options: Any) -> Any:
        if next(calls) == call or (step and given and given[0] == step):
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, *given, **options)

    return ends_here


if __name__ == "__main__":
    main()
