"""The update: micro-batches add up, old log-probabilities, gradients that are not finite."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from trainer.config import PolicyConfig
from trainer.loops.policy.reports import packing_metrics, update_metrics
from trainer.loops.policy.update import NotFinite, Updater, UpdateReport
from trainer.rollouts import Trajectory

from ..conftest import sample_first_step, small_config

WIDE = {"rollout": {"prompts_per_step": 3, "group_size": 4, "max_new_tokens": 8}}


@pytest.fixture
def collected(make_loop: Callable[..., Any]) -> Callable[[PolicyConfig], tuple[Any, list[Trajectory], torch.Tensor]]:
    def collect(config: PolicyConfig) -> tuple[Any, list[Trajectory], torch.Tensor]:
        loop = make_loop(config)
        trajectories = sample_first_step(loop)
        # Fixed advantages: the rewards of a tiny model may all be equal, and then nothing would move.
        return loop, trajectories, torch.tensor([1.0, -1.0] * (len(trajectories) // 2))

    return collect


def gradient_of(collected: Any, **optim: Any) -> dict[str, torch.Tensor]:
    """The gradient of the first update, before clipping, because clipping could hide a wrong scale."""
    config = small_config(**WIDE, optim={"lr": 1e-3, "grad_clip": 1e6, **optim})
    loop, trajectories, advantages_B = collected(config)
    loop.stage.parts.learner.optimizer.step = lambda: None
    Updater(loop.stage.parts.learner, config).run(trajectories, advantages_B)
    return {name: p.grad.clone() for name, p in loop.stage.parts.learner.parameters.items()}


def test_micro_batches_give_the_gradient_of_one_batch(collected: Any) -> None:
    whole, cut = gradient_of(collected), gradient_of(collected, micro_batch_tokens=64)
    assert any(float(gradient.abs().max()) > 1e-4 for gradient in whole.values())
    for name, gradient in whole.items():
        torch.testing.assert_close(cut[name], gradient, atol=1e-6, rtol=1e-4)


def test_the_gradient_is_that_of_the_written_out_loss(collected: Any) -> None:
    """On policy, GRPO's gradient is that of -mean_i A_i mean_t log pi, which plain forward passes compute here."""
    config = small_config(**WIDE, optim={"lr": 1e-3, "grad_clip": 1e6})
    loop, trajectories, advantages_B = collected(config)
    learner = loop.stage.parts.learner
    learner.optimizer.step = lambda: None
    Updater(learner, config).run(trajectories, advantages_B)
    ours = {name: p.grad.clone() for name, p in learner.parameters.items()}
    for parameter in learner.parameters.values():
        parameter.grad = None
    for trajectory, advantage in zip(trajectories, advantages_B, strict=True):
        prompt, response = trajectory.plan.prompt_tokens, trajectory.tokens
        tokens = torch.tensor([prompt + response])
        positions = len(prompt) - 1 + torch.arange(len(response))
        mask = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()[None, None]
        logits = learner._model(tokens, attention_mask=mask).logits[0, positions]
        logp = torch.log_softmax(logits, -1).gather(-1, torch.tensor(response)[:, None])
        (-advantage * logp.mean() / len(trajectories)).backward()
    for name, parameter in learner.parameters.items():
        torch.testing.assert_close(ours[name], parameter.grad, atol=2e-6, rtol=1e-3)


def test_full_training_has_gradients_for_all_weights(collected: Any) -> None:
    loop, trajectories, advantages_B = collected(small_config(model={"lora": None}))
    before = {name: p.detach().clone() for name, p in loop.stage.parts.learner.parameters.items()}
    loop.stage.updater.run(trajectories, advantages_B)
    assert "model.embed_tokens.weight" in before
    for name, parameter in loop.stage.parts.learner.parameters.items():
        assert not torch.equal(before[name], parameter), name


@pytest.mark.parametrize("kl_beta", [0.0, 0.1])
def test_without_a_copy_of_the_untrained_model_there_is_no_distance_from_it(collected: Any, kl_beta: float) -> None:
    config = small_config(model={"lora": None}, objective={"name": "grpo", "kl_beta": kl_beta})
    loop, trajectories, advantages_B = collected(config)
    report = loop.stage.updater.run(trajectories, advantages_B)
    assert sorted(report.kl) == (list(range(8)) if kl_beta else [])
    assert math.isnan(update_metrics(report)[0]["policy/kl"]) == (kl_beta == 0)


def test_on_policy_the_ratio_is_one_and_afterwards_it_is_not(collected: Any) -> None:
    config = small_config(optim={"lr": 1e-2, "minibatch_size": 4, "epochs_per_step": 2})
    loop, trajectories, advantages_B = collected(config)
    once = Updater(loop.stage.parts.learner, small_config(optim={"lr": 1e-2})).run(trajectories, advantages_B)
    assert all(torch.allclose(ratio, torch.ones_like(ratio)) for ratio in once.ratio.values())
    again = Updater(loop.stage.parts.learner, config).run(trajectories, advantages_B)
    assert max(float((ratio - 1).abs().max()) for ratio in again.ratio.values()) > 1e-3


@pytest.mark.parametrize("size", [2, 3, 4, 6, 12])
def test_kimi_counts_a_prompt_by_the_part_of_its_group_that_a_mini_batch_has(collected: Any, size: int) -> None:
    """On policy, where rho = 1, the loss of a mini-batch is -sum_i A_i |y_i| / N_i / sum_i 1 / K_i: N_i are the tokens, K_i the number of
    included responses of the whole group of response i. With 3 of 4 responses in a mini-batch, each response weighs alike, wherever it is cut."""
    config = small_config(
        **WIDE, optim={"lr": 1e-3, "minibatch_size": size}, objective={"name": "kimi", "tau": 0.0}, scaffold=None
    )
    loop, trajectories, advantages_B = collected(config)
    loop.stage.parts.learner.optimizer.step = lambda: None
    advantages_B = torch.tensor([1.0, -0.5, 2.0, 0.25] * 3)
    advantages_B[3] = torch.nan  # excluded: not in N
    report = Updater(loop.stage.parts.learner, config).run(trajectories, advantages_B)
    lengths, expected = [t.length for t in trajectories], []
    groups = [[b for b in range(g, g + 4) if b != 3] for g in (0, 4, 8)]
    for first in range(0, 12, size):
        rows = [b for b in range(first, first + size) if b != 3]
        gains = [float(advantages_B[b]) * lengths[b] / sum(lengths[at] for at in groups[b // 4]) for b in rows]
        expected.append(-sum(gains) / sum(1 / len(groups[b // 4]) for b in rows))
    assert report.losses == pytest.approx(expected, abs=1e-5)


def test_excluded_responses_take_no_part(collected: Any) -> None:
    loop, trajectories, advantages_B = collected(small_config())
    advantages_B[1] = torch.nan
    report = loop.stage.updater.run(trajectories, advantages_B)
    assert sorted(report.ratio) == [0, 2, 3, 4, 5, 6, 7]


def test_the_loss_shown_is_the_mean_over_the_updates(collected: Any) -> None:
    config = small_config(**WIDE, optim={"lr": 1e-9, "minibatch_size": 4})
    loop, trajectories, advantages_B = collected(config)
    advantages_B = torch.tensor([1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, 0.5, 0.5, 0.5, 0.5])
    report = Updater(loop.stage.parts.learner, config).run(trajectories, advantages_B)
    assert report.losses == pytest.approx([-1.0, 1.0, -0.5], abs=1e-4)  # on policy: minus the mean advantage
    assert update_metrics(report)[0]["policy/loss"] == pytest.approx(-0.5 / 3, abs=1e-4)


def test_a_step_whose_responses_are_all_excluded_has_no_loss_rather_than_zero(collected: Any) -> None:
    loop, trajectories, advantages_B = collected(small_config())
    report = loop.stage.updater.run(trajectories, torch.full_like(advantages_B, torch.nan))
    values, histograms = update_metrics(report)
    assert all(math.isnan(value) for value in values.values()) and not histograms


def test_a_step_without_signal_changes_nothing_but_is_reported(collected: Any) -> None:
    loop, trajectories, advantages_B = collected(small_config())
    before = [p.detach().clone() for p in loop.stage.parts.learner.parameters.values()]
    report = loop.stage.updater.run(trajectories, torch.zeros_like(advantages_B))
    assert report.grad_norms == [0.0, 0.0]
    assert len(report.entropy) == 8
    assert all(torch.equal(a, b) for a, b in zip(before, loop.stage.parts.learner.parameters.values(), strict=True))


def test_the_last_update_of_a_step_that_does_not_divide_is_smaller(collected: Any) -> None:
    """A step from which dynamic sampling has left a group out."""
    loop, trajectories, advantages_B = collected(small_config())
    report = loop.stage.updater.run(trajectories[:6], advantages_B[:6])
    assert sorted(report.ratio) == [0, 1, 2, 3, 4, 5]
    assert len(report.grad_norms) == 2


def test_a_step_without_signal_does_not_move_weights_by_momentum(collected: Any) -> None:
    loop, trajectories, advantages_B = collected(small_config(optim={"weight_decay": 0.5}))
    loop.stage.updater.run(trajectories, advantages_B)
    before = [p.detach().clone() for p in loop.stage.parts.learner.parameters.values()]
    report = loop.stage.updater.run(trajectories, torch.zeros_like(advantages_B))
    assert all(torch.equal(a, b) for a, b in zip(before, loop.stage.parts.learner.parameters.values(), strict=True))
    assert report.skipped == 1 and update_metrics(report)[0]["policy/skipped_updates"] == 1.0


def test_a_flat_update_leaves_the_optimiser_alone_so_that_the_next_one_is_as_if_it_had_not_been(collected: Any) -> None:
    def weights(flat: bool) -> list[torch.Tensor]:
        loop, trajectories, advantages_B = collected(small_config(optim={"weight_decay": 0.5}))
        loop.stage.updater.run(trajectories, advantages_B)
        if flat:
            loop.stage.updater.run(trajectories, torch.zeros_like(advantages_B))
        loop.stage.updater.run(trajectories, advantages_B)
        return [p.detach().clone() for p in loop.stage.parts.learner.parameters.values()]

    assert all(torch.equal(one, other) for one, other in zip(weights(True), weights(False), strict=True))


def test_a_later_update_that_diverges_says_how_many_have_changed_the_weights(collected: Any) -> None:
    loop, trajectories, advantages_B = collected(small_config(optim={"minibatch_size": 4}))
    end = loop.stage.parts.learner.end_update

    def spoil() -> None:
        end()
        with torch.no_grad():
            next(iter(loop.stage.parts.learner.parameters.values()))[0, 0] = torch.nan

    loop.stage.parts.learner.end_update = spoil
    with pytest.raises(NotFinite) as caught:
        loop.stage.updater.run(trajectories, advantages_B)
    assert caught.value.updates == 1


def test_an_update_that_was_skipped_has_not_changed_the_weights(collected: Any) -> None:
    """The first of two updates is flat. The gradient of the second is not finite."""
    loop, trajectories, advantages_B = collected(small_config(optim={"minibatch_size": 4}))
    advantages_B[:4] = 0.0
    norms = iter([0.0, math.nan])
    loop.stage.parts.learner.clip = lambda largest: next(norms)
    with pytest.raises(NotFinite) as caught:
        loop.stage.updater.run(trajectories, advantages_B)
    assert caught.value.updates == 0


def test_a_loss_that_is_not_a_number_stops_before_the_weights(collected: Any) -> None:
    loop, trajectories, advantages_B = collected(small_config())
    broken = next(iter(loop.stage.parts.learner.parameters.values()))
    with torch.no_grad():
        broken[0, 0] = torch.nan
    others = [p.detach().clone() for p in list(loop.stage.parts.learner.parameters.values())[1:]]
    with pytest.raises(NotFinite, match="is not a finite number") as caught:
        loop.stage.updater.run(trajectories, advantages_B)
    assert caught.value.rows
    after = list(loop.stage.parts.learner.parameters.values())[1:]
    assert all(torch.equal(a, b) for a, b in zip(others, after, strict=True))


def test_the_sampler_record_is_the_old_policy_in_corrected_mode(collected: Any) -> None:
    config = small_config(scaffold={"ratio_mode": "corrected"}, optim={"lr": 1e-3})
    loop, trajectories, advantages_B = collected(config)
    report = loop.stage.updater.run(trajectories, advantages_B)
    shown = [b for b, t in enumerate(trajectories) if t.plan.scaffold and b in report.ratio]
    bare = [b for b, t in enumerate(trajectories) if not t.plan.scaffold and b in report.ratio]
    assert all(torch.allclose(report.ratio[b], torch.ones_like(report.ratio[b]), atol=1e-4) for b in bare)
    assert any(float((report.ratio[b] - 1).abs().max()) > 1e-3 for b in shown)


def test_in_scaffolded_mode_the_prompt_is_the_one_that_was_sampled_from(collected: Any) -> None:
    config = small_config(scaffold={"ratio_mode": "scaffolded"}, optim={"lr": 1e-3})
    loop, trajectories, advantages_B = collected(config)
    seen = []
    measure = loop.stage.parts.learner.measure
    loop.stage.parts.learner.measure = lambda rows, *a, **k: (seen.extend(rows), measure(rows, *a, **k))[1]
    loop.stage.updater.run(trajectories, advantages_B)
    assert {row.tokens for row in seen} >= {t.plan.sampled_prompt_tokens + t.tokens for t in trajectories[:2]}


def test_entropy_and_log_probability_agree_with_the_full_distribution(collected: Any) -> None:
    loop, trajectories, _ = collected(small_config())
    learner, trajectory = loop.stage.parts.learner, trajectories[0]
    (scored,) = learner.score([(trajectory.plan.prompt_tokens, trajectory.tokens)], 0.7)
    tokens = torch.tensor(trajectory.tokens)
    mask = torch.ones(1, 1, *[len(trajectory.plan.prompt_tokens) + len(tokens) - 1] * 2, dtype=torch.bool).tril()
    inputs = torch.tensor([trajectory.plan.prompt_tokens + trajectory.tokens[:-1]])
    logits = learner._model(inputs, attention_mask=mask).logits[0, len(trajectory.plan.prompt_tokens) - 1 :]
    logp = torch.log_softmax(logits / 0.7, -1)
    torch.testing.assert_close(scored.logp_T, logp.gather(-1, tokens[:, None])[:, 0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(scored.entropy_T, -(logp.exp() * logp).sum(-1), atol=1e-5, rtol=1e-5)


def test_offending_rows_name_responses_of_the_step(collected: Any) -> None:
    loop, trajectories, advantages_B = collected(small_config())
    advantages_B[5] = torch.inf
    with pytest.raises(NotFinite) as caught:
        loop.stage.updater.run(trajectories, advantages_B)
    assert 5 in caught.value.rows


def test_waste_is_what_the_passes_left_empty_and_shared_is_what_was_computed_once() -> None:
    report = UpdateReport(tokens=100, nodes=60, passes=2)
    assert packing_metrics(report, 40) == {"perf/pack_waste": 0.25, "perf/shared_share": 0.4}
    assert packing_metrics(UpdateReport(), 40) == {}


def test_the_passes_of_a_group_compute_its_prompt_once(collected: Any) -> None:
    loop, trajectories, advantages_B = collected(small_config(scaffold=None, optim={"lr": 1e-3}))
    report = loop.stage.updater.run(trajectories, advantages_B)
    prompts = {t.plan.prompt_tokens for t in trajectories}
    lengths = [len(t.tokens) - 1 for t in trajectories]
    assert report.tokens == sum(len(t.plan.prompt_tokens) for t in trajectories) + sum(lengths)
    assert report.nodes <= sum(map(len, prompts)) + sum(lengths)
