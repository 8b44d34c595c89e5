"""Whole runs that sample with vLLM while their engine, worker or process is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.trainer.loops.conftest import SMALL, events_of, metrics_of
from tests.trainer.running import run
from trainer import checkpoints
from trainer.config import resolve
from trainer.monitors import RunMonitor, Spool
from trainer.runners.policy import make

pytestmark = pytest.mark.vllm
CONFIG: dict[str, Any] = SMALL | {
    "sampler": {"kind": "vllm", "push": "adapters", "kv_cache_gb": 0.25, "max_batch": 16},
    "scaffold": None,
    "steps": 5,
    "evaluation": {"every": 0},
}
_PATIENCE_S = 600.0


class Watching(RunMonitor):
    """Calls something once, between the metrics of a step and the beginning of the next step."""

    def __init__(self, out: Path, step: int = 0, act: Callable[[], Any] = lambda: None) -> None:
        super().__init__(Spool(out / "events.jsonl"))
        self._when, self._act = step, act

    def metrics(self, step: int, *values: Any) -> None:
        super().metrics(step, *values)
        if step == self._when:
            self._when = 0
            self._act()


def engines(pid: int) -> list[psutil.Process]:
    """The processes of vLLM's engines below this process."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):  # the process has ended meanwhile
            if child.name().startswith("VLLM::Engine"):
                found.append(child)
    return found


def said(out: Path, kind: str) -> list[str]:
    data = [event.data for event in events_of(out)]
    return [item.message if kind == "log" else item.reason for item in data if item.kind == kind]


def until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_run_whose_engine_and_then_whose_process_is_killed_resumes_to_the_same_metrics(
    examples_file: Path, small_dir: Path, tmp_path: Path
) -> None:
    config = resolve("policy", CONFIG)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(config, examples_file, small_dir, whole, monitor=Watching(whole))
    assert any("sampler and trainer agree" in line for line in said(whole, "log"))

    monitor = Watching(broken, 2, lambda: [engine.kill() for engine in engines(os.getpid())])
    assert not run(config, examples_file, small_dir, broken, monitor=monitor)
    assert said(broken, "state")[-1] == (
        "vLLM's engine process has ended; its log says why. Nothing is lost: resume the run from its last checkpoint."
    )
    assert 1 <= checkpoints.steps(broken / "checkpoints")[-1] <= 2

    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    files = ["--config", str(tmp_path / "config.json"), "--data", str(examples_file), "--model", str(small_dir)]
    command = [sys.executable, "-m", "trainer", "run", *files, "--out", str(broken), "--resume"]
    process = subprocess.Popen(command)
    until(lambda: process.poll() is not None or checkpoints.steps(broken / "checkpoints")[-1] >= 3)
    left = engines(process.pid) if process.poll() is None else []
    process.kill()
    process.wait()
    assert not psutil.wait_procs(left, timeout=_PATIENCE_S)[1], "engines end with the run"
    assert run(config, examples_file, small_dir, broken, resume=True, monitor=Watching(broken))
    assert metrics_of(broken) == metrics_of(whole)


def test_an_asynchronous_run_replaces_workers_whose_engine_is_killed_or_who_are_killed_themselves(
    examples_file: Path, small_dir: Path, tmp_path: Path
) -> None:
    import ray

    out = tmp_path / "run"
    runner = {"kind": "async", "workers": 1, "heartbeat_s": 600.0}
    sampler = CONFIG["sampler"] | {"push": "merged"}
    config = resolve("policy", CONFIG | {"steps": 8, "sampler": sampler, "runner": runner})
    stages: list[Any] = []
    left: list[psutil.Process] = []

    def watched(job: Any) -> Any:
        stages.append(make(job))
        return stages[0]

    def worker() -> int:
        pids = stages[0].collector._conductor._fleet.pids()
        return next(pid for name, pid in sorted(pids.items()) if name.startswith("rollout"))

    def kill_the_engine() -> None:
        engines(worker())[0].kill()
        monitor._when, monitor._act = 5, kill_the_worker

    def kill_the_worker() -> None:
        left.extend(engines(worker()))
        os.kill(worker(), signal.SIGKILL)

    monitor = Watching(out, 1, kill_the_engine)
    try:
        assert run(config, examples_file, small_dir, out, monitor=monitor, make=watched)
    finally:
        ray.shutdown()
    first, second = [line for line in said(out, "log") if "was lost and is replaced" in line]
    assert first.startswith("rollout-") and "vLLM's engine process has ended" in first
    assert second.startswith("rollout-") and second.split()[0] != first.split()[0]
    assert left and not psutil.wait_procs(left, timeout=_PATIENCE_S)[1], "engines end with their worker"
    assert checkpoints.steps(out / "checkpoints")[-1] == 8
