"""Special cases in which two objectives must be equal."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.objectives.calculator import calculate

from .oracle import Case
from .test_against_the_oracle import random_case

CLIP = {"eps_low": 0.15, "eps_high": 0.2}
seeds = st.integers(0, 10_000)
examples = settings(deadline=None, max_examples=25)


def same(one: dict[str, Any], other: dict[str, Any], factor: float = 1.0) -> None:
    """Equal gradients, up to `factor`."""
    for row, expected in zip(one["grad_logp"], other["grad_logp"], strict=True):
        assert row == pytest.approx([factor * value for value in expected], rel=1e-10, abs=1e-14)


def run(name: str, case: Case, **params: Any) -> dict[str, Any]:
    return calculate(name, {**case, "params": params})


@examples
@given(seeds)
def test_a_sampler_that_agrees_makes_icepop_grpo_and_misc_gspo(seed: int) -> None:
    case = random_case(seed, {})
    case["logp_roll"] = case["logp_old"]
    grpo, gspo = run("grpo", case, **CLIP), run("gspo", case, **CLIP)
    for mode in ("mask", "weight"):
        icepop = run("icepop", case, pop_mode=mode, **CLIP)
        assert icepop["loss"] == grpo["loss"]
        same(icepop, grpo)
        same(run("misc", case, pop_mode=mode, **CLIP), gspo)
        same(run("misc", case, pop_mode=mode, token_gradient=True, **CLIP), gspo)
        same(run("icepop", case, pop_mode=mode, level="sequence", **CLIP), gspo)


@examples
@given(seeds)
def test_responses_of_one_token_make_gspo_grpo(seed: int) -> None:
    case = random_case(seed, {})
    case = {k: [[row[0]] for row in v] if k == "mask" or k.startswith("logp") else v for k, v in case.items()}
    same(run("gspo", case, **CLIP), run("grpo", case, **CLIP))


@examples
@given(seeds)
def test_wide_weights_of_icepop_are_the_decoupled_correction(seed: int) -> None:
    case = random_case(seed, {})
    wide = run("icepop", case, pop_mode="weight", pop_low=0.0, pop_high=1000.0, **CLIP)
    same(wide, run("grpo", case, decoupled=True, weight_cap=1000.0, **CLIP))


@examples
@given(seeds)
def test_on_policy_all_token_means_are_the_plain_policy_gradient(seed: int) -> None:
    """-A_i / (tokens of the batch), and Kimi's the same per prompt."""
    case = random_case(seed, {})
    case["logp_old"] = case["logp_roll"] = case["logp"]
    found = run("dapo", case, advantage="centred")
    included = [i for i, reward in enumerate(case["rewards"]) if reward is not None]
    tokens = sum(sum(case["mask"][i]) for i in included)
    for i, row in enumerate(found["grad_logp"]):
        a = found["advantages"][i] or 0.0
        assert row == pytest.approx([-a * m / tokens for m in case["mask"][i]], abs=1e-14)
    same(run("double_sided", case), found)
    same(run("icepop", case, aggregation="token", advantage="centred"), found)
    single = {**case, "groups": [0] * 5}
    same(run("kimi", single), run("dapo", single, advantage="centred"))


@examples
@given(seeds)
def test_at_the_samplers_own_policy_oapl_is_policy_gradient_with_the_soft_baseline(seed: int) -> None:
    """The derivative of (beta2 x - A)^2 at x = 0 is -2 beta2 A."""
    case = random_case(seed, {})
    case["logp_roll"] = case["logp"]
    found = run("oapl", case, beta2=0.5)
    given_advantages = {**case, "advantages": found["advantages"], "logp_old": case["logp"]}
    constant = run("dr_grpo", given_advantages, max_tokens=1)
    same(found, constant, factor=2 * 0.5)


@examples
@given(seeds)
def test_a_teacher_that_agrees_teaches_nothing(seed: int) -> None:
    case = random_case(seed, {})
    case["logp_teacher"] = case["logp"]
    found = run("distill", case)
    assert found["loss"] == 0
    assert all(value == 0 for row in found["grad_logp"] for value in row)


@examples
@given(seeds, st.floats(0.5, 2))
def test_losses_are_linear_in_the_advantages(seed: int, factor: float) -> None:
    case = random_case(seed, {})
    case["advantages"] = [0.5, -1.0, 0.25, 2.0, -0.75]
    scaled = {**case, "advantages": [factor * a for a in case["advantages"]]}
    for name in ("grpo", "dapo", "gspo", "icepop", "misc", "double_sided"):
        assert run(name, scaled, **CLIP)["loss"] == pytest.approx(factor * run(name, case, **CLIP)["loss"], abs=1e-12)
