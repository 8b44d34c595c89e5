"""Runs whose model two Ray processes train together. They give the result of one process, and end together if one is lost."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.loops.conftest import SMALL, events_of, metrics_of, small_config, states
from tests.trainer.running import run
from trainer import checkpoints
from trainer.config import PolicyConfig
from trainer.loops.session import saving
from trainer.runners import ray_learner
from trainer.runners.policy import make

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("ray_for_all")]

STEPS = {
    "steps": 2,
    "scaffold": None,
    "rollout": SMALL["rollout"] | {"prompts_per_step": 3},
    "evaluation": {"every": 0},
}
OPTIM = {"lr": 1e-6, "minibatch_size": 6, "micro_batch_tokens": 64}


def test_a_checkpoint_of_one_process_is_continued_by_two_and_theirs_by_one(
    examples_file: Path, tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the second step is trained while the checkpoint of the first is written
    monkeypatch.setattr(saving, "AT_ONCE_BYTES", 0)

    def config(steps: int, processes: int) -> PolicyConfig:
        return small_config(**STEPS | {"steps": steps, "optim": OPTIM | {"processes": processes}})

    assert run(config(4, 1), examples_file, tiny_dir, tmp_path / "one")
    assert run(config(1, 1), examples_file, tiny_dir, tmp_path / "two")
    assert run(config(3, 2), examples_file, tiny_dir, tmp_path / "two", resume=True)
    for step in (2, 3):
        names = sorted(file.name for file in (tmp_path / "two" / "checkpoints" / f"step-{step:06d}").iterdir())
        parts = [f"{owner}-0000{n}-of-00002.safetensors" for owner in ("optimizer", "policy") for n in (1, 2)]
        assert names == [*parts, "state.json"]
    assert run(config(4, 1), examples_file, tiny_dir, tmp_path / "two", resume=True)
    expected, found = metrics_of(tmp_path / "one"), metrics_of(tmp_path / "two")
    assert {place: found[place] for place in expected} == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_a_stop_reaches_both_processes_in_the_middle_of_a_step(
    examples_file: Path, tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step is given up, and a resumed run makes it again. `test_stopping.py` compares the weights."""
    monkeypatch.setattr(ray_learner, "_LOOK_S", 0.0)
    config = small_config(**STEPS | {"optim": OPTIM | {"processes": 2, "epochs_per_step": 5}})
    updated: list[bool] = []

    def make_and_stop(job: Any) -> Any:
        stage: Any = make(job)
        learner: Any = stage.parts.learner
        update = learner.update

        def stopped_in_the_second_step(*arguments: Any) -> Any:
            if checkpoints.steps(tmp_path / "run" / "checkpoints"):
                job.monitor.request_stop()
            found = update(*arguments)
            updated.append(True)
            return found

        learner.update = stopped_in_the_second_step
        return stage

    assert run(config, examples_file, tiny_dir, tmp_path / "run", make=make_and_stop)
    assert states(tmp_path / "run")[-1][0] == "stopped" and updated == [True]
    assert checkpoints.steps(tmp_path / "run" / "checkpoints") == [1]
    assert run(config, examples_file, tiny_dir, tmp_path / "run", resume=True)
    assert (
        states(tmp_path / "run")[-1][0] == "finished" and checkpoints.steps(tmp_path / "run" / "checkpoints")[-1] == 2
    )


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGKILL, "was lost, so the others were ended"), (signal.SIGSTOP, "hangs: the others have waited for it")],
    ids=["killed", "frozen"],
)
def test_a_lost_or_frozen_process_ends_the_run_as_one_that_may_go_on(
    number: signal.Signals, said: str, examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    config = small_config(**STEPS | {"optim": OPTIM | {"processes": 2}, "runner": {"heartbeat_s": 20.0}})
    pids = []

    def make_and_send(job: Any) -> Any:
        stage: Any = make(job)
        learner: Any = stage.parts.learner
        pids.extend(learner.pids())
        update = learner.update

        def send_in_the_second_step(*arguments: Any) -> Any:
            if checkpoints.steps(tmp_path / "run" / "checkpoints"):
                os.kill(pids[1], number)
            return update(*arguments)

        learner.update = send_in_the_second_step
        return stage

    assert not run(config, examples_file, tiny_dir, tmp_path / "run", make=make_and_send)
    last = events_of(tmp_path / "run")[-1].data
    assert last.kind == "state" and last.state == "failed" and last.lost, "so that its server lets it go on"
    assert f"process 1 of the 2 that train the model together {said}" in last.reason
    assert checkpoints.steps(tmp_path / "run" / "checkpoints") == [1]
