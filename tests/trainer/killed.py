"""Runs that SIGKILL ends, each in its own process, so that nothing is unwound, closed or flushed."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any

from tests.patience import SECONDS

from .running import run


def killed(
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
    # this process loads the modules of runs once, and each run is a fork of it
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.trainer.preloaded"])
    around = dict(os.environ), list(sys.path)
    process = context.Process(target=_until, args=(where, call, step, prepare, around, given, options))
    process.start()
    process.join(4 * SECONDS)
    alive = process.is_alive()
    process.kill()
    process.join()
    assert not alive and process.exitcode == -signal.SIGKILL, f"it ended by itself: {process.exitcode}"


def _until(
    where: str,
    call: int,
    step: int,
    prepare: Callable[[], None] | None,
    around: tuple[dict[str, str], list[str]],
    given: tuple[Any, ...],
    options: dict[str, Any],
) -> None:
    os.environ.update(around[0])
    sys.path[:] = around[1]
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
