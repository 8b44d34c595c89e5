"""Whole runs that sample with vLLM: resumed after a kill, and with an engine that is killed under them."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.trainer.loops.conftest import SMALL, events_of, metrics_of
from trainer import checkpoints
from trainer.config import resolve
from trainer.loops.run import run_policy
from trainer.monitors import RunMonitor, Spool
from trainer.runners import loop_for

CONFIG: dict[str, Any] = SMALL | {
    "sampler": {"kind": "vllm", "kv_cache_gb": 0.25, "max_batch": 16},
    "scaffold": None,
    "steps": 4,
    "evaluation": {"every": 0},
}


def engines(pid: int) -> list[psutil.Process]:
    """Engines of vLLM below this process."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            if child.name().startswith("VLLM::Engine"):
                found.append(child)
    return found


def said(out: Path, kind: str) -> list[str]:
    data = [event.data for event in events_of(out)]
    return [item.message if kind == "log" else item.reason for item in data if item.kind == kind]


def kill_an_engine(when: Callable[[], bool], pid: Callable[[], int]) -> None:
    def wait_and_kill() -> None:
        while not (when() and engines(pid())):
            time.sleep(0.05)
        engines(pid())[0].send_signal(signal.SIGKILL)

    threading.Thread(target=wait_and_kill, daemon=True).start()


@pytest.mark.parametrize("push", ["merged", "adapters"])
def test_a_killed_run_resumes_to_the_same_metrics(
    push: str, examples_file: Path, small_dir: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG | {"sampler": CONFIG["sampler"] | {"push": push}}))

    def command(out: Path, *more: str) -> list[str]:
        files = ["--config", str(config), "--data", str(examples_file), "--model", str(small_dir), "--out", str(out)]
        return [sys.executable, "-m", "trainer", "run", *files, *more]

    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run(command(whole), check=True, env=environment)
    assert any("sampler and trainer agree" in line for line in said(whole, "log"))
    process = subprocess.Popen(command(broken), env=environment)
    while not checkpoints.steps(broken / "checkpoints"):
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run(command(broken, "--resume"), check=True, env=environment)
    assert metrics_of(broken) == metrics_of(whole)


def test_an_engine_that_is_killed_ends_a_synchronous_run_with_the_reason(
    examples_file: Path, small_dir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    kill_an_engine(lambda: bool(checkpoints.steps(out / "checkpoints")), os.getpid)
    config = resolve("policy", CONFIG | {"steps": 1000})
    assert not run_policy(config, examples_file, small_dir, out, RunMonitor(Spool(out / "events.jsonl")), resume=False)
    assert said(out, "state")[-1] == (
        "vLLM's engine process has ended; its log says why. Nothing is lost: resume the run from its last checkpoint."
    )


def test_an_asynchronous_run_replaces_a_worker_whose_engine_is_killed(
    examples_file: Path, small_dir: Path, tmp_path: Path
) -> None:
    import ray

    out = tmp_path / "run"
    config = resolve("policy", CONFIG | {"steps": 6, "runner": {"kind": "async", "workers": 1, "heartbeat_s": 600.0}})
    loops: list[Any] = []

    def loop_of(parts: Any) -> Any:
        loops.append(loop_for(config, small_dir)(parts))
        return loops[0]

    def worker() -> int:
        pids = loops[0]._conductor._fleet.pids()
        return next(pid for name, pid in sorted(pids.items()) if name.startswith("rollout"))

    kill_an_engine(lambda: bool(loops) and loops[0].step >= 1, worker)
    try:
        monitor = RunMonitor(Spool(out / "events.jsonl"))
        assert run_policy(config, examples_file, small_dir, out, monitor, resume=False, loop_of=loop_of)
    finally:
        ray.shutdown()
    lost = [line for line in said(out, "log") if "was lost and is replaced" in line]
    assert lost and lost[0].startswith("rollout-") and "vLLM's engine process has ended" in lost[0]
    assert checkpoints.steps(out / "checkpoints")[-1] == 6
