"""Processes of jobs, forked from one that has loaded torch and transformers, because loading these takes four processor seconds."""

import multiprocessing
import os
import sys
from pathlib import Path


class Forked:
    """The parts of a `subprocess.Popen` that the tests use. `errors` is the file of its stderr."""

    def __init__(self, environment: dict[str, str], errors: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.webapp.weights.preloaded"])
        self._errors = errors
        self._process = context.Process(target=_begin, args=(environment, str(errors)))
        self._process.start()

    def send_signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[None, str]:
        self._process.join(timeout)
        if self._process.is_alive():
            self._process.kill()
            raise TimeoutError(f"the process was still there after {timeout} s")
        return None, self._errors.read_text() if self._errors.exists() else ""


def _begin(environment: dict[str, str], errors: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with open(errors, "wb") as file:
        os.dup2(file.fileno(), 2)
    from trainer.__main__ import main

    sys.exit(main(["job"]))
