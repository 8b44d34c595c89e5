"""A synchronous run whose sampler lags: OAPL's L without workers, training that is one step off, and replayed responses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.inference.checksum import digest_of

from ..conftest import events_of, metrics_of, small_config

LAGGING: dict[str, Any] = {
    "steps": 7,
    "scaffold": None,
    "runner": {"push_every": 3},
    "evaluation": {"every": 2},
    "objective": {"name": "oapl", "beta2": 0.1},
}


def weights_of(sampler: Any) -> str:
    return digest_of(dict(sampler._model.named_parameters()))


@pytest.fixture
def watched(make_loop: Callable[..., Any]) -> Callable[..., tuple[Any, list[tuple[str, int, str]]]]:
    """A loop, and the calls of its sampler as (for training or evaluation, version, digest of the weights)."""

    def make(**changes: Any) -> tuple[Any, list[tuple[str, int, str]]]:
        loop = make_loop(small_config(**(LAGGING | changes)))
        asked: list[tuple[str, int, str]] = []
        sample = loop.stage.parts.sampler.sample

        def note(requests: Any, progress: Any = None, finished: Any = None) -> Any:
            results = sample(requests, progress, finished)
            purpose = "evaluation" if requests[0].temperature == 0 else "training"
            asked.append((purpose, results[0].version, weights_of(loop.stage.parts.sampler)))
            return results

        loop.stage.parts.sampler.sample = note
        return loop, asked

    return make


def test_between_pushes_one_version_samples_and_evaluations_see_the_newest(watched: Any) -> None:
    loop, asked = watched()
    loop.run()
    training = [(version, digest) for purpose, version, digest in asked if purpose == "training"]
    assert [version for version, _ in training] == [0, 0, 0, 3, 3, 3, 6]
    assert len({digest for _, digest in training}) == 3
    evaluations = [(version, digest) for purpose, version, digest in asked if purpose == "evaluation"]
    assert [version for version, _ in evaluations] == [0, 2, 4, 6, 7]
    assert len({digest for _, digest in evaluations}) == 5


def test_a_resumed_run_samples_with_the_lagging_weights_again(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    """Step 5 is in the middle of a lag, so its checkpoint also holds the weights of step 3."""
    make_loop(small_config(**LAGGING), tmp_path / "whole").run()
    first = make_loop(small_config(**LAGGING), tmp_path / "broken")
    one_step = first.advance

    def killed() -> None:
        if first.step == 5:
            raise KeyboardInterrupt
        one_step()

    first.advance = killed
    with pytest.raises(KeyboardInterrupt):
        first.run()
    again = make_loop(small_config(**LAGGING), tmp_path / "broken")
    assert again.resume() and again.step == 5
    again.run()
    assert metrics_of(tmp_path / "broken") == metrics_of(tmp_path / "whole")


def test_the_optimiser_is_forgotten_at_a_push_if_asked(watched: Any) -> None:
    loop, _ = watched(runner={"push_every": 3, "reset_optimizer": True}, steps=6)
    kept = []
    one_step = loop.advance

    def note() -> None:
        one_step()
        kept.append(bool(loop.stage.parts.learner.optimizer.state_tensors()))

    loop.advance = note
    loop.run()
    assert kept == [True, True, False, True, True, False]


def test_the_ratio_of_oapl_is_to_the_lagging_sampler(make_loop: Callable[..., Any]) -> None:
    loop = make_loop(
        small_config(**LAGGING | {"steps": 2, "optim": {"lr": 1e-2}, "objective": {"name": "oapl", "beta2": 1.0}})
    )
    reports = []
    run = loop.stage.updater.run

    def note(*arguments: Any) -> Any:
        reports.append(run(*arguments))
        return reports[-1]

    loop.stage.updater.run = note
    loop.run()
    far = [max(float((ratio - 1).abs().max()) for ratio in report.ratio.values()) for report in reports]
    assert far[0] < 1e-3 < far[1]
    assert torch.isfinite(torch.tensor(reports[1].losses)).all()


def test_one_step_off_trains_on_what_was_sampled_before_the_last_update(watched: Any, tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "runner": {"one_step_off": True},
        "steps": 4,
        "objective": {"name": "grpo", "decoupled": True},
    }
    loop, asked = watched(**changes)
    loop.run()
    assert [version for purpose, version, _ in asked if purpose == "training"] == [0, 0, 1, 2]
    assert [version for purpose, version, _ in asked if purpose == "evaluation"] == [0, 2, 4]
    mismatch = {step: value for (step, key), value in metrics_of(tmp_path / "run").items() if "mismatch_raw" in key}
    assert mismatch[1] == pytest.approx(1.0, abs=1e-4)  # there are no older responses for the first step


REUSING = [
    {"runner": {"one_step_off": True}},
    {"runner": {"push_every": 3, "replay": 1}, "optim": {"lr": 1e-3, "minibatch_size": 4}},
]


@pytest.mark.parametrize("changes", REUSING)
def test_reuse_is_resumed_as_it_was(make_loop: Callable[..., Any], tmp_path: Path, changes: dict[str, Any]) -> None:
    config = small_config(**(LAGGING | {"steps": 5, "evaluation": {"every": 0}} | changes))
    make_loop(config, tmp_path / "whole").run()
    first = make_loop(config, tmp_path / "broken")
    for _ in range(2):
        first.stage.open(first.step) if not first.step else None
        first.advance()
    again = make_loop(config, tmp_path / "broken")
    assert again.resume() and again.step == 2
    again.run()
    whole = metrics_of(tmp_path / "whole")
    assert {place: value for place, value in metrics_of(tmp_path / "broken").items() if place[0] > 2} == {
        place: value for place, value in whole.items() if place[0] > 2
    }


def test_replayed_responses_are_those_of_the_same_weights_and_counted_apart(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    changes = {"runner": {"push_every": 3, "replay": 3}, "steps": 5, "evaluation": {"every": 0}}
    make_loop(small_config(**(LAGGING | changes))).run()
    metrics = metrics_of(tmp_path / "run")
    # Two prompts a step, four responses each: the buffer holds 0, 2, 4 of them; the push after step 3 clears it.
    assert [metrics[step, "rollout/replayed"] for step in range(1, 6)] == [0, 8, 12, 0, 8]
    rows = [(e.step, row) for e in events_of(tmp_path / "run") if e.data.kind == "rollouts" for row in e.data.rollouts]
    mine = {step: {row.example_key for at, row in rows if at == step and row.phase == "train"} for step in range(1, 6)}
    replayed = {row.example_key for at, row in rows if at == 5 and row.phase == "train" and row.group >= 2}
    assert replayed and replayed <= mine[4]
    assert {row.stretches[0].version for at, row in rows if at == 5 and row.phase == "train"} == {3}
