"""A synchronous run whose sampler lags: OAPL's L without workers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.inference.checksum import digest_of

from .conftest import metrics_of, small_config

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
    """A loop, and what its sampler is asked: (for training or evaluation, version, digest of the weights)."""

    def make(**changes: Any) -> tuple[Any, list[tuple[str, int, str]]]:
        loop = make_loop(small_config(**(LAGGING | changes)))
        asked: list[tuple[str, int, str]] = []
        sample = loop.stage.parts.sampler.sample

        def note(requests: Any, progress: Any = None) -> Any:
            results = sample(requests, progress)
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
    """Step 5 is in the middle of a lag: its checkpoint holds the weights of step 3 too."""
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
