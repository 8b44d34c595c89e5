"""The loop: its reports, its ends, its learning, and how it continues after a kill."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from tests import fork_server, timeouts
from trainer import checkpoints
from trainer.inference.checksum import digest_of
from trainer.loops.run import explain
from trainer.loops.session.errors import AttemptAbandoned, RunFailed, StopRequested
from trainer.loops.session.stage import learning_rate

from ...running import run
from ..conftest import SMALL, events_of, metrics_of, sample_first_step, small_config

EVERY_STEP = {
    "reward/mean", "reward/std", "reward/rubric", "rollout/length", "rollout/truncated_share", "rollout/excluded",
    "rollout/flat_groups", "scaffold/ratio", "policy/entropy", "policy/kl", "policy/kl_old", "policy/ratio_raw",
    "policy/ratio_masked", "policy/clip_share", "policy/loss", "policy/grad_norm", "perf/rollout_tokens_per_s",
    "perf/train_tokens_per_s", "perf/pack_waste", "perf/shared_share", "perf/step_s", "optim/lr", "criterion/must_contain",
    "perf/rollout_s", "perf/reward_s", "perf/learner_s", "perf/cores", "perf/memory_gib", "perf/machine_busy", "perf/machine_memory",
    "perf/machine_cores",
}  # fmt: skip


def states(out: Path) -> list[tuple[str, str]]:
    return [(event.data.state, event.data.reason) for event in events_of(out) if event.data.kind == "state"]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_a_run_reports_every_metric_of_every_step(examples_file: Path, tiny_dir: Path, out: Path) -> None:
    assert run(small_config(), examples_file, tiny_dir, out)
    events = events_of(out)
    for step in range(1, 5):
        values = set().union(*(e.data.values for e in events if e.data.kind == "metrics" and e.step == step))
        assert values >= EVERY_STEP
    assert [e.step for e in events if e.data.kind == "metrics" and "eval/rubric_score" in e.data.values] == [0, 2, 4]
    trained = [r for e in events if e.data.kind == "rollouts" for r in e.data.rollouts if r.phase == "train"]
    assert len(trained) == 4 * 8
    assert all(len(r.tokens) == len(r.logprobs) == len(r.ratios) == len(r.mask) for r in trained)
    assert {name for name, _ in states(out)} == {"running", "finished"}
    assert events[-1].data.kind == "state" and "eval/rubric_score" in events[-1].data.summary


def test_a_step_says_what_its_time_was_spent_on(examples_file: Path, tiny_dir: Path, out: Path) -> None:
    run(small_config(steps=2), examples_file, tiny_dir, out)
    values: dict[str, float] = {}
    for event in events_of(out):
        if event.data.kind == "metrics" and event.step == 2:
            values |= event.data.values
    parts = [values[f"perf/{work}_s"] for work in ("rollout", "reward", "learner")]
    assert min(parts) > 0 and values["perf/step_s"] / 2 < sum(parts) <= values["perf/step_s"]
    assert values["perf/evaluation_s"] > 0 and values["perf/saving_s"] > 0  # after the last step
    assert values["perf/network_received"] >= 0 and values["perf/network_sent"] >= 0
    assert values["perf/cores"] > 0 and values["perf/machine_cores"] == psutil.cpu_count()
    assert values["perf/memory_gib"] > 0.05 and 0 < values["perf/machine_memory"] < 1


def test_rollout_metrics_leave_before_the_update(examples_file: Path, tiny_dir: Path, out: Path) -> None:
    run(small_config(steps=1), examples_file, tiny_dir, out)
    metrics = [set(e.data.values) for e in events_of(out) if e.data.kind == "metrics" and e.step == 1]
    assert "reward/mean" in metrics[0] and "policy/entropy" not in metrics[0]


def test_the_scaffold_is_shown_to_the_first_of_a_group_and_not_to_the_last(make_loop: Callable[..., Any]) -> None:
    plans = make_loop(small_config()).stage.planner.plan(1)
    assert [plan.scaffold_shown for plan in plans] == [3, 2, 1, 0, 3, 2, 1, 0]
    assert plans[3].sampled_prompt_tokens == plans[3].prompt_tokens
    assert len(plans[0].sampled_prompt_tokens) > len(plans[0].prompt_tokens)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"model": {"lora": None}},
        {"model": {"lora": None, "dtype": "bfloat16"}, "optim": SMALL["optim"] | {"optimizer": "muon"}},
    ],
    ids=["adapters", "all weights", "bfloat16 and Muon"],
)
def test_a_resumed_run_repeats_the_uninterrupted_one(
    config: dict[str, Any], examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run(small_config(**config), examples_file, tiny_dir, whole)
    run(small_config(**config), examples_file, tiny_dir, broken)
    for step in (3, 4):
        (broken / "checkpoints" / f"step-{step:06d}" / "state.json").unlink()
    (broken / "events.jsonl").unlink()
    assert run(small_config(**config), examples_file, tiny_dir, broken, resume=True)
    again, expected = metrics_of(broken), metrics_of(whole)
    assert {step for step, _ in again} == {3, 4}
    assert again == {place: value for place, value in expected.items() if place[0] >= 3}


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One thread, like a process with OMP_NUM_THREADS=1. With more threads, sums are added in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_killed_run_resumes_to_the_same_metrics(
    examples_file: Path, tiny_dir: Path, tmp_path: Path, one_thread: None
) -> None:
    import json

    changes = {"steps": 12, "evaluation": {"every": 0}}
    config, file = small_config(**changes), tmp_path / "config.json"
    file.write_text(json.dumps(SMALL | changes))
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(config, examples_file, tiny_dir, whole)
    files = ["--config", str(file), "--data", str(examples_file), "--model", str(tiny_dir), "--out", str(broken)]
    process = subprocess.Popen(
        [*fork_server.command(), "run", *files],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 5 * timeouts.SECONDS
    while not checkpoints.steps(broken / "checkpoints") and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()  # its output ends with it
    assert 0 < checkpoints.steps(broken / "checkpoints")[-1] < 12
    assert run(config, examples_file, tiny_dir, broken, resume=True)
    assert metrics_of(broken) == metrics_of(whole)
    numbers = [event.seq for event in events_of(broken)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_stop_during_sampling_repeats_that_step_later(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    loop = make_loop(small_config(steps=3))
    sample = loop.stage.parts.sampler.sample

    def stop_in_the_second_step(requests: Any, progress: Any = None, finished: Any = None) -> Any:
        if loop.step == 1:
            loop.job.monitor.request_stop()
        return sample(requests, progress, finished)

    loop.stage.parts.sampler.sample = stop_in_the_second_step
    with pytest.raises(StopRequested):
        loop.run()
    assert loop.step == 1
    again, straight = make_loop(small_config(steps=3)), make_loop(small_config(steps=3), tmp_path / "straight")
    assert again.resume() and again.step == 1
    again.run()
    straight.run()
    assert metrics_of(tmp_path / "run") == metrics_of(tmp_path / "straight")


@pytest.mark.parametrize("step", [0, 1])
def test_a_stop_between_sampling_and_update_repeats_that_step_later(
    step: int, make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    loop = make_loop(small_config(steps=3))
    weigh = loop.stage.advantages

    def stop_once_sampled(trajectories: Any, greedy_B: Any) -> Any:
        if loop.step == step:
            loop.job.monitor.request_stop()
        return weigh(trajectories, greedy_B)

    loop.stage.advantages = stop_once_sampled
    with pytest.raises(StopRequested):
        loop.run()
    again, straight = make_loop(small_config(steps=3)), make_loop(small_config(steps=3), tmp_path / "straight")
    assert again.resume() and again.step == step
    again.run()
    straight.run()
    assert metrics_of(tmp_path / "run") == metrics_of(tmp_path / "straight")


def test_an_evaluation_that_was_stopped_is_made_up_for(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    loop = make_loop(small_config(steps=3))
    sample = loop.stage.parts.sampler.sample

    def stop_in_the_evaluation(requests: Any, progress: Any = None, finished: Any = None) -> Any:
        if loop.step == 2 and requests[0].temperature == 0:
            loop.job.monitor.request_stop()
        return sample(requests, progress, finished)

    loop.stage.parts.sampler.sample = stop_in_the_evaluation
    with pytest.raises(StopRequested):
        loop.run()
    assert (2, "eval/rubric_score") not in metrics_of(tmp_path / "run")
    again = make_loop(small_config(steps=3))
    assert again.resume()
    again.run()
    assert (2, "eval/rubric_score") in metrics_of(tmp_path / "run")


def test_an_abandoned_attempt_writes_nothing_more(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    loop = make_loop(small_config())

    class Gone:
        command = "abandon"

        def notify(self) -> None:
            pass

    loop.job.monitor._sink = Gone()
    with pytest.raises(AttemptAbandoned):
        loop.run()
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.parametrize(
    ("every", "said", "kept"),
    [
        (1, "the checkpoint of step 3 holds these very weights, that of step 2 is good", [2, 3]),
        (2, "the checkpoint of step 2 is good", [2]),
        (4, "there is no checkpoint yet", []),
    ],
)
def test_divergence_keeps_the_batch_and_the_last_good_checkpoint(
    every: int, said: str, kept: list[int], make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    """The update of the third step spoils the weights, and these sample the fourth step."""
    loop = make_loop(small_config(checkpoint={"every": every, "keep": 2}))
    update = loop.stage.updater.run

    def spoil(*arguments: Any) -> Any:
        report = update(*arguments)
        if loop.step == 2:
            with torch.no_grad():
                next(iter(loop.stage.parts.learner.parameters.values()))[0, 0] = torch.nan
        return report

    loop.stage.updater.run = spoil
    with pytest.raises(
        RunFailed,
        match=rf"a log-probability is not a finite number at step 4, .*; {said}\..*Lower optim.lr \(now 0.001\)",
    ):
        loop.run()
    offending = [e.data for e in events_of(tmp_path / "run") if e.data.kind == "artifact"][-1]
    assert offending.role == "offending_batch"
    assert (tmp_path / "run" / offending.path).read_text().count("\n") >= 1
    assert checkpoints.steps(tmp_path / "run" / "checkpoints") == kept


def test_a_model_whose_probabilities_are_not_numbers_is_found_out_before_it_is_trained(
    make_loop: Callable[..., Any],
) -> None:
    loop = make_loop(small_config())
    for model in (loop.stage.parts.learner._model, loop.stage.parts.sampler._model):
        with torch.no_grad():
            model.model.norm.weight.mul_(torch.nan)
    with pytest.raises(RunFailed, match="probabilities that are not numbers before the first update"):
        loop.run()


def test_a_sampler_with_other_weights_is_found_out(make_loop: Callable[..., Any]) -> None:
    loop = make_loop(small_config())
    loop.stage.parts.sampler.load_weights = lambda weights, version: digest_of(dict(weights))
    weight = loop.stage.parts.sampler._model.model.layers[0].mlp.down_proj.weight
    with torch.no_grad():
        weight.mul_(3.0)
    with pytest.raises(RunFailed, match="sampler and trainer disagree"):
        loop.run()


def test_a_push_that_does_not_arrive_ends_the_run(make_loop: Callable[..., Any]) -> None:
    loop = make_loop(small_config())
    sampler = loop.stage.parts.sampler
    load = sampler.load_weights

    def stick(weights: Any, version: int) -> str:
        held = [(name, weight * (1 + 1e-7) if version == 2 else weight) for name, weight in weights]
        return load(held, version)

    sampler.load_weights = stick
    with pytest.raises(RunFailed, match="weights of step 2 did not reach the sampler"):
        loop.run()
    assert loop.step == 1


def test_the_engine_check_knows_the_nucleus(make_loop: Callable[..., Any]) -> None:
    rollout = SMALL["rollout"] | {"top_p": 0.8, "temperature": 0.7}
    make_loop(small_config(steps=1, rollout=rollout)).run()


def test_examples_without_a_judge_for_them_are_excluded_and_counted(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    loop = make_loop(small_config(steps=1, evaluation={"every": 0}))
    for key, task in loop.stage.parts.tasks.items():
        first = task.rubric.criteria[0].model_copy(update={"verifier": None})
        rubric = task.rubric.model_copy(update={"criteria": (first, *task.rubric.criteria[1:])})
        loop.stage.parts.tasks[key] = replace(task, rubric=rubric)
    trajectories = sample_first_step(loop)
    assert {t.reward.excluded for t in trajectories} == {"rubric: no verdict for uses-e: no verifier; needs a judge"}
    values = metrics_of(tmp_path / "run")
    assert values[1, "rollout/excluded"] == 8.0
    assert (1, "reward/mean") not in values


def test_the_policy_learns_what_is_rewarded(examples_file: Path, tiny_dir: Path, out: Path) -> None:
    config = small_config(
        steps=30,
        rollout={"prompts_per_step": 4, "group_size": 8, "max_new_tokens": 8},
        optim={"lr": 2e-2},
        evaluation={"every": 0},
        checkpoint={"every": 30},
    )
    assert run(config, examples_file, tiny_dir, out)
    rewards = [value for (_, key), value in metrics_of(out).items() if key == "reward/mean"]
    assert not any(key.startswith("judge/") for _, key in metrics_of(out)), "its verifiers ask no judge"
    assert sum(rewards[-5:]) / 5 > sum(rewards[:5]) / 5 + 0.3


def test_failures_are_reported_with_the_last_lines_of_the_traceback(tiny_dir: Path, tmp_path: Path, out: Path) -> None:
    data = tmp_path / "bad.jsonl"
    data.write_text('{"key": "a", "prompt": []}\n')
    assert not run(small_config(), data, tiny_dir, out)
    assert states(out)[-1] == (
        "failed",
        f"{data}, line 1, prompt: Tuple should have at least 1 item after validation, not 0",
    )
    (log,) = [event.data.message for event in events_of(out) if event.data.kind == "log"]
    assert "Traceback" not in log or log.count("\n") < 12


def test_out_of_memory_says_what_to_lower() -> None:
    error = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
    assert "lower optim.micro_batch_tokens (now 1024)" in explain(error, small_config())


def test_what_is_lowered_already_is_not_advised() -> None:
    config = small_config(model={"dtype": "bfloat16"}, optim={"recompute_activations": True})
    said = explain(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"), config)
    assert "micro_batch_tokens" in said and "sampler.max_batch (now 64) or rollout.max_new_tokens (now 8)" in said
    assert "recompute" not in said and "dtype" not in said and "model.lora" not in said and "runner" not in said


def test_workers_and_what_an_engine_reserves_are_advised_where_they_are_there() -> None:
    config = small_config(sampler={"kind": "vllm", "kv_cache_gb": 1.5}, runner={"kind": "async", "workers": 3})
    said = explain(MemoryError(), config)
    assert "sampler.kv_cache_gb (now 1.5) or runner.workers (now 3)" in said


def test_learning_rate_schedules() -> None:
    def rates(**optim: Any) -> list[float]:
        config = small_config(optim={"lr": 1.0, **optim})
        return [round(learning_rate(config, step), 6) for step in range(1, 5)]

    assert rates() == [1.0, 1.0, 1.0, 1.0]
    assert rates(schedule="linear") == [1.0, 0.75, 0.5, 0.25]
    assert rates(schedule="cosine") == [1.0, 0.853553, 0.5, 0.146447]
    assert rates(warmup_steps=1) == [0.5, 1.0, 1.0, 1.0]
