"""Every objective in the loop, on the tiny model: gradients add up, ratios start at 1, and the policy learns."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.config.objectives.policy import CHOICES
from trainer.inference.models import load_model
from trainer.loops.learner.learner import Teacher
from trainer.loops.policy.reports import update_metrics
from trainer.loops.policy.update import Updater
from trainer.loops.session.session import StepTell
from trainer.objectives import REGISTRY

from ...running import run
from ..conftest import events_of, metrics_of, sample_first_step, small_config

SEEN_BY_BOTH = {"ratio_mode": "scaffolded"}
WIDE = {"rollout": {"prompts_per_step": 3, "group_size": 4, "max_new_tokens": 8}}
VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {"name": name} for name in CHOICES},
    "distill": {"name": "distill", "teacher": "tiny"},
    "decoupled": {"name": "grpo", "decoupled": True, "kl_beta": 0.1},
    "weights": {"name": "icepop", "pop_mode": "weight", "aggregation": "constant"},
    "token gradient": {"name": "misc", "token_gradient": True},
    "leave one out": {"name": "dapo", "advantage": "leave_one_out"},
    "over the batch": {"name": "double_sided", "advantage": "batch"},
}


@pytest.fixture
def teacher(tiny_dir: Path) -> Teacher:
    """The tiny model with larger weights in its layers. Its probabilities are less even, and adapters can learn them."""
    model = load_model(tiny_dir)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.mlp.down_proj.weight.mul_(3.0)
    return Teacher(model)


@pytest.fixture
def updated(make_loop: Callable[..., Any], teacher: Teacher) -> Callable[..., Any]:
    """The responses of one step through the updates, as (loop, report, trajectories). The advantages are fixed, so that all objectives
    move.
    """

    def update(objective: dict[str, Any], step: bool = True, **optim: Any) -> Any:
        config = small_config(
            **WIDE, objective=objective, scaffold=SEEN_BY_BOTH, optim={"lr": 1e-2, "grad_clip": 1e6, **optim}
        )
        loop = make_loop(config)
        trajectories = sample_first_step(loop)
        if not step:
            loop.stage.parts.learner.optimizer.step = lambda: None
        advantages_B = torch.tensor([1.0, -1.0, 0.0] * (len(trajectories) // 3))
        updater = Updater(loop.stage.parts.learner, config, teacher if config.objective.name == "distill" else None)
        return loop, updater.run(trajectories, advantages_B), trajectories

    return update


@pytest.mark.parametrize("variant", VARIANTS)
def test_micro_batches_give_the_gradient_of_one_batch(updated: Any, variant: str) -> None:
    def gradient(**optim: Any) -> dict[str, torch.Tensor]:
        loop, _, _ = updated(VARIANTS[variant], step=False, **optim)
        return {name: p.grad.clone() for name, p in loop.stage.parts.learner.parameters.items()}

    whole, cut = gradient(), gradient(micro_batch_tokens=64)
    largest = max(float(value.abs().max()) for value in whole.values())
    assert largest > 0
    for name, value in whole.items():
        torch.testing.assert_close(cut[name], value, atol=1e-4 * largest, rtol=1e-3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_ratio_starts_at_one_and_then_moves(updated: Any, variant: str) -> None:
    _, once, _ = updated(VARIANTS[variant])
    assert all(torch.allclose(ratio, torch.ones_like(ratio), atol=1e-3) for ratio in once.ratio.values())
    _, again, _ = updated(VARIANTS[variant] | ({"beta2": 1.0} if variant == "oapl" else {}), epochs_per_step=3)
    assert max(float((ratio - 1).abs().max()) for ratio in again.ratio.values()) > 1e-4
    assert all(math.isfinite(loss) for loss in again.losses)


@pytest.mark.parametrize("name", ["icepop", "misc", "distill"])
def test_the_mismatch_is_reported_raw_and_after_masking(updated: Any, name: str) -> None:
    _, report, trajectories = updated(VARIANTS[name])
    values = report.extra
    assert {"mismatch_raw", "mismatch_masked", "pop_share"} <= set(values)
    assert values["mismatch_raw"][0][0] == pytest.approx(1.0, abs=1e-3)
    assert sum(weight for _, weight in values["mismatch_raw"]) == sum(len(t.tokens) for t in trajectories)


def test_tokens_on_which_the_sampler_disagrees_are_silenced_and_counted(
    make_loop: Callable[..., Any],
) -> None:
    config = small_config(objective={"name": "icepop"}, scaffold=None, optim={"lr": 1e-3})
    loop = make_loop(config)
    trajectories = sample_first_step(loop)
    for trajectory in trajectories:  # a sampler that gave every other token three times the probability
        doubtful = tuple(p + (math.log(3.0) if i % 2 else 0.0) for i, p in enumerate(trajectory.logprobs))
        prompt, said = trajectory.spans
        object.__setattr__(trajectory, "spans", (prompt, said._replace(logprobs=doubtful)))
    report = loop.stage.updater.run(trajectories, torch.tensor([1.0, -1.0] * 4))
    for b, trajectory in enumerate(trajectories):
        assert report.weight[b].tolist() == [0.0 if i % 2 else 1.0 for i in range(len(trajectory.tokens))]
    share, _ = report.extra["pop_share"][0]
    assert share == pytest.approx(
        sum(len(t.tokens) // 2 for t in trajectories) / sum(len(t.tokens) for t in trajectories)
    )
    raw, masked = report.extra["mismatch_raw"][0][0], report.extra["mismatch_masked"][0][0]
    assert raw < 0.8 and masked == pytest.approx(1.0, abs=1e-3)
    far = update_metrics(report)[0]["policy/mismatch_far_raw"]
    assert far == pytest.approx(3.0, abs=1e-2) == max(value for value, _ in report.extra["mismatch_far_raw"])


def test_grpo_reports_what_it_always_did(updated: Any) -> None:
    _, report, _ = updated({"name": "grpo"})
    assert report.extra == {} and report.advantages == {}


def test_rewards_that_are_missing_exclude_nothing_from_distillation(make_loop: Callable[..., Any]) -> None:
    config = small_config(objective=VARIANTS["distill"], scaffold=None)
    updater = Updater(make_loop(config).stage.parts.learner, config)
    assert updater.advantages(torch.tensor([1.0, float("nan")]), torch.tensor([0, 0])).tolist() == [0.0, 0.0]


def test_the_rollout_record_of_distillation_holds_the_teachers_verdict(updated: Any) -> None:
    _, report, trajectories = updated(VARIANTS["distill"])
    assert sorted(report.advantages) == list(range(len(trajectories)))
    assert any(value < -0.01 for value in report.advantages.values())
    kl = sum(value * weight for value, weight in report.extra["kl_teacher"])
    assert kl == pytest.approx(-sum(report.advantages[b] * len(t.tokens) for b, t in enumerate(trajectories)), rel=1e-4)


def test_remax_subtracts_what_the_greedy_response_is_worth(make_loop: Callable[..., Any]) -> None:
    config = small_config(objective={"name": "grpo", "advantage": "remax"})
    loop = make_loop(config)
    asked: list[Any] = []
    sample = loop.stage.parts.sampler.sample

    def remember(requests: Any, progress: Any = None, finished: Any = None) -> Any:
        asked.append(requests)
        return sample(requests, progress, finished)

    loop.stage.parts.sampler.sample = remember
    trajectories = sample_first_step(loop)
    greedy_B = loop.stage._greedy(trajectories, 1, StepTell(loop, 1))
    advantages_B = loop.stage.advantages(trajectories, greedy_B)
    drawn, greedy = asked
    assert [r.temperature for r in greedy] == [0.0, 0.0]
    assert [r.prompt_tokens for r in greedy] == [trajectories[0].plan.prompt_tokens, trajectories[4].plan.prompt_tokens]
    worth = [t.reward.total - float(a) for t, a in zip(trajectories, advantages_B, strict=True)]
    assert worth[:4] == pytest.approx([worth[0]] * 4) and worth[4:] == pytest.approx([worth[4]] * 4)


LEARNS: dict[str, tuple[float, dict[str, Any]]] = {  # learning rate and parameters
    "icepop": (2e-2, {}),
    "misc": (1e-2, {"eps_low": 0.05, "eps_high": 0.05}),  # at twice the rate some seeds learn, and then collapse
    "double_sided": (2e-2, {}),
    "kimi": (2e-2, {}),
    "oapl": (2e-2, {"beta2": 0.3}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNS)
def test_the_policy_learns_what_is_rewarded(name: str, examples_file: Path, tiny_dir: Path, tmp_path: Path) -> None:
    lr, params = LEARNS[name]
    config = small_config(
        steps=15,
        objective={"name": name, **params},
        scaffold=SEEN_BY_BOTH,
        rollout={"prompts_per_step": 4, "group_size": 8, "max_new_tokens": 8},
        optim={"lr": lr},
        evaluation={"every": 0},
        checkpoint={"every": 15},
    )
    out = tmp_path / "run"
    assert run(config, examples_file, tiny_dir, out)
    rewards = [value for (_, key), value in metrics_of(out).items() if key == "reward/mean"]
    assert sum(rewards[-4:]) / 4 > sum(rewards[:2]) / 2 + 0.3


def test_distillation_comes_closer_to_its_teacher(
    make_loop: Callable[..., Any], teacher: Teacher, tmp_path: Path
) -> None:
    config = small_config(
        steps=16,
        objective=VARIANTS["distill"],
        scaffold=None,
        rollout={"prompts_per_step": 4, "group_size": 8, "max_new_tokens": 8},
        optim={"lr": 3e-3},
        evaluation={"every": 0},
        checkpoint={"every": 16},
    )
    loop = make_loop(config)
    loop.stage.updater._teacher = teacher
    loop.run()
    kl = [value for (_, key), value in metrics_of(tmp_path / "run").items() if key == "policy/kl_teacher"]
    assert sum(kl[-4:]) < 0.7 * sum(kl[:4])


@pytest.mark.parametrize("given", [False, True])
def test_a_teacher_that_cannot_teach_is_refused_before_anything_is_sampled(
    given: bool, examples_file: Path, tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if given:
        from trainer.inference import models

        load, known = models.load_tokenizer, []

        def other_words(path: Path) -> Any:
            tokenizer = load(path)
            if known:
                tokenizer.add_tokens(["<another>"])
            known.append(path)
            return tokenizer

        monkeypatch.setattr(models, "load_tokenizer", other_words)
    out = tmp_path / "run"
    config = small_config(objective=VARIANTS["distill"], scaffold=None)
    teacher: dict[str, Any] = {"teacher": tiny_dir} if given else {}
    assert not run(config, examples_file, tiny_dir, out, **teacher)
    last = [event.data for event in events_of(out) if event.data.kind == "state"][-1]
    assert ("another tokenizer" if given else "--teacher") in last.reason


def test_every_policy_objective_of_the_catalogue_can_be_chosen() -> None:
    assert set(CHOICES) == {name for name, objective in REGISTRY.items() if objective.entry.family == "policy"}
