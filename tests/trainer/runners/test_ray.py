"""Asynchronous runs on real Ray actors: killed and frozen workers do not change the result of training."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.loops.conftest import events_of, metrics_of
from trainer.loops.session.session import Session
from trainer.rollouts import RewardSetup

from .conftest import async_config, from_fleet
from .test_loop import logs, metrics_without_times, trained_on

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("ray_for_all")]

RUNNER = {"ahead": 3, "max_staleness": 2}


@pytest.fixture
def make_on_ray(make_loop: Callable[..., Any], tiny_dir: Path) -> Callable[..., Session]:
    from trainer.runners.ray_fleet import RayFleet

    def make(config: Any, run_dir: Path) -> Session:
        return make_loop(config, run_dir, lambda job: from_fleet(RayFleet(config, tiny_dir, RewardSetup(config)), job))

    return make


def disturb(loop: Any, number: signal.Signals, kind: str) -> None:
    """After the second step, sends the signal to the first living worker of that kind."""

    def wait_and_send() -> None:
        fleet: Any = loop.stage.collector._conductor._fleet
        while loop.step < 2:
            time.sleep(0.01)
        victims = [pid for name, pid in sorted(fleet.pids().items()) if name.startswith(kind)]
        os.kill(victims[0], number)

    threading.Thread(target=wait_and_send, daemon=True).start()


@pytest.mark.parametrize(
    ("number", "kind", "said"),
    [
        (signal.SIGKILL, "rollout", "was lost and is replaced"),
        (signal.SIGKILL, "reward", "was lost and is replaced"),
        (signal.SIGSTOP, "rollout", "hangs and is replaced: no sign of life"),
        (signal.SIGSTOP, "reward", "was lost and is replaced: no reward after"),
    ],
    ids=["a sampler is killed", "a scorer is killed", "a sampler freezes", "a scorer freezes"],
)
def test_killed_and_frozen_workers_leave_no_trace_in_what_is_learned(
    number: signal.Signals,
    kind: str,
    said: str,
    make_on_ray: Callable[..., Session],
    make_async: Callable[..., Session],
    tmp_path: Path,
) -> None:
    steps = {"steps": 8, "evaluation": {"every": 0}}
    make_async(async_config(RUNNER, **steps), tmp_path / "inside").run()
    # on a busy machine a healthy worker may be given up, too, any number of times
    runner = RUNNER | ({"heartbeat_s": 10.0, "retries": 10} if number == signal.SIGSTOP else {})
    loop = make_on_ray(async_config(runner, **steps), tmp_path / "ray")
    disturb(loop, number, kind)
    loop.run()
    assert metrics_without_times(tmp_path / "ray") == metrics_without_times(tmp_path / "inside")
    assert trained_on(tmp_path / "ray") == trained_on(tmp_path / "inside")
    assert any(line.startswith(f"{kind}-") and said in line for line in logs(tmp_path / "ray"))


def test_a_run_from_a_shell_starts_its_own_workers(tiny_dir: Path, examples_file: Path, tmp_path: Path) -> None:
    import json
    import subprocess
    import sys

    from tests.trainer.loops.conftest import SMALL

    config = tmp_path / "config.json"
    config.write_text(json.dumps(SMALL | {"steps": 3, "runner": {"kind": "async", "workers": 1}}))
    files = [
        "--config",
        str(config),
        "--data",
        str(examples_file),
        "--model",
        str(tiny_dir),
        "--out",
        str(tmp_path / "o"),
    ]
    command = [sys.executable, "-m", "trainer", "run", *files]
    done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {step for step, key in metrics_of(tmp_path / "o") if key == "async/staleness"} == {1, 2, 3}
    assert any(e.data.kind == "state" and e.data.state == "finished" for e in events_of(tmp_path / "o"))
