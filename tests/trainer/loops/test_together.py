"""Runs of one base model in one process, in turns. Each run has exactly the same numbers as alone."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.timeouts import SECONDS
from trainer.config import RecipeConfig
from trainer.files import digest_of
from trainer.inference.common import in_common
from trainer.inference.models import load_model
from trainer.loops.registry import make_stage
from trainer.loops.session.errors import RunFailed
from trainer.loops.session.stage import StageJob
from trainer.loops.together import read_ahead, run_together
from trainer.monitors import RunMonitor, Spool

from ..running import job_of, run
from .conftest import events_of, metrics_of, small_config
from .texts import demonstrations, make_config, preferences, write_examples

LORAS: list[dict[str, Any]] = [{"rank": 2, "alpha": 4}, {"rank": 4, "alpha": 4}, {"rank": 2, "alpha": 8}]


def sfts() -> list[RecipeConfig]:
    return [
        make_config("sft", model={"name": "tiny", "lora": lora}, optim={"lr": lr}, seed=seed)
        for lora, lr, seed in zip(LORAS, (1e-3, 3e-3, 1e-2), (0, 1, 0), strict=True)
    ]


def policies() -> list[RecipeConfig]:
    """Merged weights that follow each update, adapters that are pushed without a merge, and weights that lag behind."""
    own: list[dict[str, Any]] = [
        {"sampler": {"push": "merged"}},
        {"sampler": {"push": "adapters"}, "seed": 3},
        {"runner": {"push_every": 2}, "objective": {"name": "grpo", "kl_beta": 0.1}},
    ]
    return [small_config(model={"lora": lora}, **changes) for lora, changes in zip(LORAS, own, strict=True)]


def dpos() -> list[RecipeConfig]:
    return [
        make_config("dpo", model={"name": "tiny", "lora": lora}, loss={"beta": beta})
        for lora, beta in zip(LORAS, (0.1, 0.3, 0.1), strict=True)
    ]


@pytest.fixture
def data(tmp_path: Path, examples_file: Path) -> dict[str, Path]:
    return {
        "sft": write_examples(demonstrations(8, 3), tmp_path / "demonstrations.jsonl"),
        "policy": examples_file,
        "dpo": write_examples(preferences(8, 3), tmp_path / "preferences.jsonl"),
    }


KINDS: dict[str, Callable[[], list[RecipeConfig]]] = {"sft": sfts, "policy": policies, "dpo": dpos}


def together(
    configs: Sequence[RecipeConfig], data: Path, model: Path, out: Path, resume: bool = False, **options: Any
) -> list[bool]:
    monitors = [RunMonitor(Spool(out / str(n) / "events.jsonl")) for n in range(len(configs))]
    jobs = [
        (job_of(config, data, model, out / str(n), monitor), resume)
        for n, (config, monitor) in enumerate(zip(configs, monitors, strict=True))
    ]
    ended = run_together(jobs, **options)
    closed = [monitor.close() for monitor in monitors]
    assert all(closed)
    return ended


def run_results(folder: Path) -> tuple[dict[Any, float], list[Any], dict[str, str]]:
    """Metrics, responses, and the digests of the adapters that the run has left, bit by bit."""
    records = [r for event in events_of(folder) if event.data.kind == "rollouts" for r in event.data.rollouts]
    files = {
        str(path.relative_to(folder)): digest_of(path)
        for part in ("outputs", "checkpoints")
        for path in sorted((folder / part).rglob("*.safetensors"))
    }
    assert files
    return metrics_of(folder), records, files


@pytest.mark.parametrize("recipe", KINDS)
@pytest.mark.parametrize("steps", [1, 3])
def test_a_run_among_others_is_the_run_by_itself(
    recipe: str, steps: int, data: dict[str, Path], tiny_dir: Path, tmp_path: Path
) -> None:
    configs, weights = KINDS[recipe](), digest_of(tiny_dir / "model.safetensors")
    assert all(together(configs, data[recipe], tiny_dir, tmp_path / "together", steps=steps))
    for n, config in enumerate(configs):
        assert run(config, data[recipe], tiny_dir, tmp_path / "alone" / str(n))
        assert run_results(tmp_path / "together" / str(n)) == run_results(tmp_path / "alone" / str(n))
    assert digest_of(tiny_dir / "model.safetensors") == weights


class Watched:
    """Makes stages that note which stage made which step, and calls `before` in each."""

    def __init__(self, before: Callable[[StageJob, int], None] = lambda job, number: None) -> None:
        self.steps: list[tuple[str, int]] = []
        self.stages: list[Any] = []
        self._before = before

    def __call__(self, job: StageJob) -> Any:
        stage: Any = make_stage(job)
        step = stage.step

        def noted(number: int, tell: Any) -> None:
            self.steps.append((job.run_dir.name, number))
            self._before(job, number)
            step(number, tell)

        stage.step = noted
        self.stages.append(stage)
        return stage


def last_state(folder: Path) -> tuple[str, int]:
    event = events_of(folder)[-1]
    return event.data.state if event.data.kind == "state" else event.data.kind, event.step


def test_turns_go_round_by_so_many_steps(data: dict[str, Path], tiny_dir: Path, tmp_path: Path) -> None:
    watched = Watched()
    together(sfts()[:2], data["sft"], tiny_dir, tmp_path, steps=3, make=watched)
    assert watched.steps == [*(("0", n) for n in (1, 2, 3)), *(("1", n) for n in (1, 2, 3)), ("0", 4), ("1", 4)]


@pytest.mark.parametrize("recipe", ["sft", "policy"])
def test_one_is_stopped_and_one_fails_and_the_others_go_on(
    recipe: str, data: dict[str, Path], tiny_dir: Path, tmp_path: Path
) -> None:
    def before(job: StageJob, number: int) -> None:
        if number == 2 and job.run_dir.name == "1":
            job.monitor.request_stop()
        if number == 3 and job.run_dir.name == "2":
            raise RunFailed("as planned")

    configs = KINDS[recipe]()
    assert together(configs, data[recipe], tiny_dir, tmp_path, make=Watched(before)) == [True, True, False]
    assert [last_state(tmp_path / str(n)) for n in range(3)] == [("finished", 4), ("stopped", 1), ("failed", 2)]
    assert all(together(configs, data[recipe], tiny_dir, tmp_path, resume=True))
    for n, config in enumerate(configs):
        assert run(config, data[recipe], tiny_dir, tmp_path / "alone" / str(n))
        assert metrics_of(tmp_path / str(n)) == metrics_of(tmp_path / "alone" / str(n))
        assert run_results(tmp_path / str(n))[2] == run_results(tmp_path / "alone" / str(n))[2]


def test_the_base_is_in_memory_once_and_the_merged_weights_once_more(
    data: dict[str, Path], tiny_dir: Path, tmp_path: Path
) -> None:
    watched = Watched()
    together(policies(), data["policy"], tiny_dir, tmp_path, make=watched)
    learners = [stage.parts.learner.plain for stage in watched.stages]
    samplers = [stage.parts.sampler._model for stage in watched.stages]
    names = [name for name, _ in learners[0].named_parameters() if "lora" not in name]
    assert len(names) > 10
    for name in names:
        held = {model.get_parameter(name).data_ptr() for model in learners}
        assert len(held) == 1, name
    merged, beside, late = samplers
    assert merged is late and merged is not learners[0]
    assert beside.get_input_embeddings().weight is learners[0].get_input_embeddings().weight


PLAIN = (sys.executable, "-m", "trainer")


def started(
    recipe: str,
    configs: list[dict[str, Any]],
    data: Path,
    model: Path,
    out: Path,
    *more: str,
    trainer: Sequence[str] = PLAIN,
) -> Any:
    out.mkdir(exist_ok=True)
    files = [out / f"{name}.json" for name in "abc"[: len(configs)]]
    for file, config in zip(files, configs, strict=True):
        file.write_text(json.dumps(config))
    command = [*trainer, "shared", "--recipe", recipe, "--config", *map(str, files)]
    command += ["--data", str(data), "--model", str(model), "--out", str(out / "runs"), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_killed_and_stopped_from_a_shell_all_go_on(data: dict[str, Path], tiny_dir: Path, tmp_path: Path) -> None:
    configs = [config.model_dump(mode="json") | {"steps": 4000, "checkpoint": {"every": 5}} for config in sfts()[:2]]
    folder = tmp_path / "runs"

    def saved() -> list[set[str]]:
        return [{path.name for path in (folder / name / "checkpoints").glob("step-??????")} for name in "ab"]

    running = started("sft", configs, data["sft"], tiny_dir, tmp_path)
    until(lambda: all(saved()))
    running.send_signal(signal.SIGKILL)
    running.wait(SECONDS)
    running = started("sft", configs, data["sft"], tiny_dir, tmp_path, trainer=fork_server.command())
    assert "already holds a run" in running.communicate(timeout=SECONDS)[0] and running.returncode == 2
    before = saved()
    running = started("sft", configs, data["sft"], tiny_dir, tmp_path, "--resume", trainer=fork_server.command())
    until(lambda: all(now - then for now, then in zip(saved(), before, strict=True)))
    (folder / "a" / "stop").touch()
    until(lambda: last_state(folder / "a")[0] == "stopped")
    before = saved()
    until(lambda: bool(saved()[1] - before[1]))  # the other one continues
    os.kill(running.pid, signal.SIGTERM)
    assert running.wait(SECONDS) == 0
    reached = [last_state(folder / name) for name in "ab"]
    assert [state for state, _ in reached] == ["stopped", "stopped"]
    # not beyond the first run: each has a process of its own, and one may be ahead
    assert max(int(name[-6:]) for name in before[1]) < reached[1][1] < 4000
    for name, config, (_, step) in zip("ab", sfts()[:2], reached, strict=True):
        alone = tmp_path / "alone" / name
        run(type(config).model_validate(config.model_dump() | {"steps": step}), data["sft"], tiny_dir, alone)
        mine = {place: value for place, value in metrics_of(alone).items() if place[0] < step}
        assert mine == {place: value for place, value in metrics_of(folder / name).items() if place in mine}


@pytest.mark.parametrize("recipe", KINDS)
def test_a_run_in_one_of_several_processes_is_the_run_by_itself(
    recipe: str, data: dict[str, Path], tiny_dir: Path, tmp_path: Path
) -> None:
    configs = KINDS[recipe]()
    dumped = [config.model_dump(mode="json") for config in configs]
    running = started(
        recipe, dumped, data[recipe], tiny_dir, tmp_path, "--processes", "2", trainer=fork_server.command()
    )
    said, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 0, said
    for name, config in zip("abc", configs, strict=True):
        assert run(config, data[recipe], tiny_dir, tmp_path / "alone" / name)
        assert run_results(tmp_path / "runs" / name) == run_results(tmp_path / "alone" / name)


def test_processes_share_the_base_that_was_read_before(data: dict[str, Path], tiny_dir: Path, tmp_path: Path) -> None:
    config = sfts()[0]
    read_ahead("sft", tiny_dir, "float32", data["sft"])
    with in_common():
        ahead = load_model(tiny_dir)
        again = load_model(tiny_dir)
    with in_common():
        later = load_model(tiny_dir)
    places = [next(model.parameters()).data_ptr() for model in (ahead, again, later)]
    assert places[0] == places[1] != places[2]
    # a config that cannot be read is left to the run, which reports it
    read_ahead("sft", tmp_path / "nowhere", "float32", data["sft"])
    assert together([config], data["sft"], tmp_path / "nowhere", tmp_path / "out") == [False]
    assert "no config.json here" in events_of(tmp_path / "out" / "0")[-1].data.reason


def test_runs_that_do_not_share_their_base_are_refused_with_the_reason(
    data: dict[str, Path], tiny_dir: Path, tmp_path: Path
) -> None:
    whole = {"data": {"source": "references"}, "model": {"lora": None}}
    running = started("sft", [whole, whole], data["sft"], tiny_dir, tmp_path, trainer=fork_server.command())
    out, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 2
    assert (
        "these runs cannot train together: model.lora is empty: a run that trains all weights cannot share them" in out
    )
