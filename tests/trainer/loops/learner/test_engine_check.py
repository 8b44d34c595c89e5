"""Healthy starts pass, with any length and any arithmetic. A sampler with other weights or settings does not.

This is the quick form of `python -m benchmarks.engine_check`, which makes a hundred starts and tries larger models.
"""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.engine_check import FAULTS, LR, NEEDS_UPDATES, EngineSetting, outcome
from trainer.config import resolve
from trainer.loops.learner import engine_check
from trainer.loops.learner.engine_check import (
    BEHIND,
    EngineAgreement,
    EngineCheck,
    allowed_outside,
    compared,
    fits_better,
    misplaced_ends,
    spread,
)
from trainer.rollouts import PromptPlan, Span, Trajectory


def trajectory(tokens: tuple[int, ...], stop: str = "length", index: int = 0) -> Trajectory:
    plan = PromptPlan("key", 0, index, "", (1,), (1,), 0)
    return Trajectory(plan, (Span("prompt", (1,)), Span("policy", tokens, (-1.0,) * len(tokens), 0)), "", stop)  # type: ignore[arg-type]


@pytest.mark.parametrize(("dtype", "top_p"), [("float32", 0.9), ("bfloat16", 0.9), ("bfloat16", 1.0)])
def test_healthy_starts_pass(dtype: str, top_p: float, tiny_dir: Path) -> None:
    how, said = outcome(EngineSetting(tiny_dir, dtype, 512, 32, top_p), seed=0)
    assert how in ("passed", "warned at 2"), said


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_caught_within_two_steps(fault: str, tiny_dir: Path) -> None:
    """The learning rate is 0 in bfloat16, which is the harder case, unless the fault shows only after an update."""
    lr, dtype = (LR, "float32") if fault in NEEDS_UPDATES else (0.0, "bfloat16")
    how, said = outcome(EngineSetting(tiny_dir, dtype, 1024, 32), 1, FAULTS[fault], lr)
    assert how in ("caught at 1", "caught at 2"), said


def test_a_lost_push_of_unmerged_adapters_ends_the_run_in_bfloat16_too(tiny_dir: Path) -> None:
    """If adapters are merged, the difference may come from rounding, so it is only a warning."""
    setting = EngineSetting(tiny_dir, "bfloat16", 1024, 32, push="adapters")
    how, said = outcome(setting, 1, FAULTS["a push that does not arrive"], lr=1e-3)
    assert how == "caught at 2" and BEHIND in said, said
    assert outcome(setting, 1, lr=1e-3)[0] == "passed"
    merged = replace(setting, push="merged")
    assert outcome(merged, 1, FAULTS["a push that does not arrive"], lr=1e-3)[0] == "warned at 2"


def test_without_an_untrained_model_nothing_is_compared_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """All weights are trained without a KL, so `untrained` would be the trained model itself. It would agree with any weights."""
    asked: list[bool] = []

    def logprobs(*_: object, untrained: bool = False) -> list[torch.Tensor]:
        asked.append(untrained)
        return [torch.full((40,), -1.0)]

    monkeypatch.setattr(engine_check, "_logprobs", logprobs)
    for lora, kl_beta, expected in (({}, 0.0, True), (None, 0.1, True), (None, 0.0, False)):
        asked.clear()
        config = resolve("policy", {"model": {"lora": lora}, "scaffold": None, "objective": {"kl_beta": kl_beta}})
        EngineCheck(config, frozenset()).look(2, None, [trajectory((3,) * 40)])  # type: ignore[arg-type]
        assert (True in asked) is expected


def test_the_allowance_grows_slower_than_the_responses() -> None:
    assert allowed_outside(0, "bfloat16") == 2
    assert allowed_outside(100, "bfloat16") == 7 and allowed_outside(10_000, "bfloat16") == 142
    assert not EngineAgreement(10_000, 0.0, 143).fits("bfloat16") and EngineAgreement(10_000, 0.0, 142).fits("bfloat16")


def test_the_mean_ratio_is_what_the_trainer_gives_to_what_the_sampler_can_say() -> None:
    """Of three equally likely tokens the sampler does not draw one. It says 1/2, and the trainer says 1/3."""
    found = compared([torch.full((600,), math.log(1 / 2))], [torch.full((600,), math.log(1 / 3))], "float32")
    assert found.ratio == pytest.approx(2 / 3) and found.error == pytest.approx(0.0, abs=1e-9)
    assert "leaves out 0.333" in replace(found, mean=0.0, worst=0.0).problem("float32")


def test_two_ways_to_round_have_the_mean_ratio_1() -> None:
    """Samples of one distribution, under the same one with noise: the mean ratio is 1 within its error."""
    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(4000, 50, generator=draw)
    roll, train = (
        (logits + noise * torch.randn(logits.shape, generator=draw)).log_softmax(-1) for noise in (0.0, 0.05)
    )
    tokens = torch.multinomial(roll.exp(), 1, generator=draw)
    found = compared([roll.gather(-1, tokens)[:, 0]], [train.gather(-1, tokens)[:, 0]], "bfloat16")
    assert found.mean > 0.03 and abs(found.ratio - 1.0) < 4 * found.error < 0.005


def test_one_response_that_differs_is_seen_among_many() -> None:
    roll = [torch.full((40,), -1.0) for _ in range(50)]
    logp = [each.clone() for each in roll]
    logp[7] += 0.4
    found = compared(roll, logp, "bfloat16")
    assert found.mean == pytest.approx(0.008) and found.worst == pytest.approx(0.4) and found.usual == 0.0
    assert "over the tokens of one response" in found.problem("bfloat16")


def test_a_response_that_differs_is_held_against_the_others_and_not_against_itself() -> None:
    """Rounding moves the responses by 0.006. One that differs by 0.1 was sampled from another model; one that differs by 0.04 was not."""
    roll = [torch.full((40,), -1.0) for _ in range(8)]
    logp = [each + 0.006 for each in roll]
    logp[3] = roll[3] - 0.1
    assert "over the tokens of one response" in compared(roll, logp, "bfloat16").problem("bfloat16")
    logp = [each + 0.04 for each in roll]
    logp[3] = roll[3] - 0.06
    assert compared(roll, logp, "bfloat16").fits("bfloat16")


def test_a_short_response_counts_by_the_root_of_its_length() -> None:
    roll = [torch.full((40,), -1.0) for _ in range(8)] + [torch.full((4,), -1.0)]
    logp = [each + 0.006 for each in roll]
    # for 4 tokens half of the difference counts, and 0.02 + 5 x 0.006 are allowed
    for off, fits in ((0.09, True), (0.12, False)):
        logp[8] = roll[8] - off
        assert compared(roll, logp, "bfloat16").fits("bfloat16") is fits


def test_which_of_two_models_fits_better_is_asked_beyond_chance() -> None:
    draw = torch.Generator().manual_seed(0)
    noise, shift = torch.randn(2000, generator=draw) * 0.01, torch.randn(2000, generator=draw) * 0.005
    assert fits_better(noise, noise + shift) and not fits_better(noise + shift, noise)
    assert not fits_better(noise, noise) and not fits_better(noise[:8], noise[:8] + 1.0)
    other = torch.randn(2000, generator=draw) * 0.01
    assert not fits_better(noise, other) and not fits_better(other, noise)


def test_responses_end_where_their_end_is_and_nowhere_else() -> None:
    stops = frozenset({9})
    assert misplaced_ends([trajectory((3, 4, 9), "stop"), trajectory((3, 4))], stops, False) == ""
    assert "continues after token 9" in misplaced_ends([trajectory((3, 9, 4))], stops, False)
    assert "ended by itself with token 4" in misplaced_ends([trajectory((3, 4), "stop")], stops, False)
    assert misplaced_ends([trajectory((3, 4), "stop")], stops, True) == "", "it may have ended at a text"


def test_the_environment_may_speak_after_an_end_of_the_policy() -> None:
    spans = (
        Span("prompt", (1,)),
        Span("policy", (3, 9), (-1.0, -1.0), 0),
        Span("env", (5,)),
        Span("policy", (9,), (-1.0,), 0),
    )
    turns = Trajectory(PromptPlan("key", 0, 0, "", (1,), (1,), 0), spans, "", "stop")
    assert misplaced_ends([turns], frozenset({9}), False) == ""


def test_the_second_look_is_at_other_responses() -> None:
    many = [trajectory((3,) * 10, index=index) for index in range(200)]
    first, second = ({t.plan.index for t in spread(many, look)} for look in (0, 1))
    assert len(first) == len(second) == 64 and not first & second
