"""Special cases: bounds, empty responses, missing rewards, overflow, padding, groups, micro-batches."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.config.objectives.knobs import Aggregated
from trainer.objectives import REGISTRY, ObjectiveBatch, ObjectiveError
from trainer.objectives.calculator import calculate

from .test_against_the_oracle import random_case

POLICIES = [name for name, objective in REGISTRY.items() if objective.entry.family != "preference"]
# So wide that the two ratios below matter; the same for every objective that has the knob.
LOOSE = {"eps_low": 0.3, "eps_high": 0.3, "pop_high": 1.3, "max_tokens": 6}


def loose(name: str) -> dict[str, Any]:
    known = REGISTRY[name].entry.parameters.model_fields
    return {key: value for key, value in LOOSE.items() if key in known}


def one_token(ratio_name: str, value: float, advantage: float) -> dict[str, Any]:
    record = {"logp": [[math.log(value)]], "logp_old": [[0.0]], "logp_roll": [[0.0]], "advantages": [advantage]}
    if ratio_name == "mismatch":
        record = {"logp": [[0.0]], "logp_old": [[0.0]], "logp_roll": [[-math.log(value)]], "advantages": [advantage]}
    return record


@pytest.mark.parametrize(("ratio", "advantage"), [(1.2, 1), (0.8, -1)])
def test_on_the_clip_bound_the_gradient_still_flows(ratio: float, advantage: float) -> None:
    found = calculate("grpo", one_token("policy", ratio, advantage))
    assert found["grad_logp"][0][0] == pytest.approx(-ratio * advantage)
    beyond = calculate("grpo", one_token("policy", ratio + 1e-6 * advantage, advantage))
    assert beyond["grad_logp"] == [[0]]
    assert beyond["loss"] == pytest.approx(-ratio * advantage)


@pytest.mark.parametrize("mismatch", [2.0, 0.5])
def test_icepop_bounds_are_inclusive(mismatch: float) -> None:
    assert calculate("icepop", one_token("mismatch", mismatch, 1))["loss"] == -1
    outside = mismatch * (1 + 1e-6 if mismatch > 1 else 1 - 1e-6)
    assert calculate("icepop", one_token("mismatch", outside, 1))["loss"] == 0


@pytest.mark.parametrize("scale", [0.014, 0.079, 0.004, 0.032])
def test_a_bound_met_up_to_rounding_is_met(scale: float) -> None:
    """exp(log(2a) - log(a)) is more than 2 for the first two; exp(log(1.28a) - log(a)) is less than 1.28 for the others."""
    record = {"logp": [[0.0]], "logp_old": [[math.log(2 * scale)]], "logp_roll": [[math.log(scale)]]}
    record["logp"] = record["logp_old"]
    assert calculate("icepop", {**record, "advantages": [1]})["loss"] == -1
    drifted = {"logp": [[math.log(1.28 * scale)]], "logp_roll": [[math.log(scale)]], "advantages": [1]}
    assert calculate("double_sided", drifted)["loss"] == 0


@pytest.mark.parametrize("ratio", [0.8, 1.28])
def test_double_sided_interval_is_open(ratio: float) -> None:
    assert calculate("double_sided", one_token("policy", ratio, 1))["grad_logp"] == [[0]]
    inside = ratio + (1e-6 if ratio < 1 else -1e-6)
    assert calculate("double_sided", one_token("policy", inside, 1))["grad_logp"][0][0] == pytest.approx(-inside)


@pytest.mark.parametrize("advantage", [1, -1])
@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_kimi_bounds_are_inclusive_whatever_the_sign(ratio: float, advantage: float) -> None:
    params = {"params": {"tau": 0.0}}
    on = calculate("kimi", {**one_token("policy", ratio, advantage), **params})
    assert on["grad_logp"][0][0] == pytest.approx(-ratio * advantage)
    out = calculate("kimi", {**one_token("policy", ratio**1.01, advantage), **params})
    assert out["grad_logp"] == [[0]]
    assert out["loss"] == pytest.approx(-ratio * advantage)


@pytest.mark.parametrize("name", POLICIES)
def test_a_response_without_tokens_has_no_gradient_and_breaks_nothing(name: str) -> None:
    case = random_case(0, loose(name))
    found = calculate(name, case)
    assert found["grad_logp"][3] == [0]
    assert math.isfinite(found["loss"])
    nothing = {**case, "mask": [[0] * len(row) for row in case["mask"]]}
    found = calculate(name, nothing)
    assert all(value == 0 for row in found["grad_logp"] for value in row)
    assert found["loss"] == 0 or name == "oapl"
    assert found["diagnostics"].get("ratio_raw") is None


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("distill", "sft")])
def test_a_missing_reward_is_as_if_the_response_were_not_there(name: str) -> None:
    case = random_case(2, loose(name))
    case["rewards"] = [1.0, 0.0, 0.25, 0.5, None]
    fewer = {key: value[:4] if isinstance(value, list) else value for key, value in case.items()}
    found, expected = calculate(name, case), calculate(name, fewer)
    assert found["loss"] != 0
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-12, abs=1e-15)
    assert found["advantages"][4] is None
    assert found["grad_logp"][4] == [0] * 3
    assert found["diagnostics"]["excluded"] == 1
    for row, other in zip(found["grad_logp"], expected["grad_logp"], strict=False):
        assert row == pytest.approx(other, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ["grpo", "dapo", "gspo", "icepop", "misc", "double_sided"])
def test_equal_rewards_teach_nothing(name: str) -> None:
    case = {**random_case(1, loose(name)), "rewards": [0.1 + 0.2, 0.3, 0.3, 0.3, 0.3]}
    case["params"]["advantage"] = "group_std"
    found = calculate(name, case)
    assert found["loss"] == 0
    assert all(value == 0 for row in found["grad_logp"] for value in row)


def test_a_ratio_that_overflows_does_no_harm_where_it_is_clipped() -> None:
    for name in ("grpo", "dapo", "gspo"):
        found = calculate(name, {"logp": [[0.0]], "logp_old": [[-2000.0]], "advantages": [1], "params": {}})
        assert found["grad_logp"] == [[0]]
    found = calculate("kimi", {"logp": [[0.0]], "logp_roll": [[-2000.0]], "advantages": [1], "params": {"tau": 0.0}})
    assert found["grad_logp"] == [[0]]
    with pytest.raises(ObjectiveError, match="differ too much"):
        calculate("grpo", {"logp": [[0.0]], "logp_old": [[-2000.0]], "advantages": [-1]})


@pytest.mark.parametrize("name", ["icepop", "distill"])
def test_a_ratio_that_overflows_does_no_harm_where_the_mismatch_silences_it(name: str) -> None:
    """Token 1: rho = e^2000, k = e^-1999, weight 0. Token 2: rho = k = 1 and A = -1, so the loss is 1/2."""
    record = {"logp": [[0.0, -1.0]], "logp_old": [[-2000.0, -1.0]], "logp_roll": [[-1.0, -1.0]]}
    found = calculate(name, {**record, "logp_teacher": [[-2001.0, -2.0]], "advantages": [-1]})
    assert found["loss"] == 0.5
    assert found["grad_logp"] == [[0, 0.5]]


@pytest.mark.parametrize("name", ["grpo", "icepop", "double_sided", "kimi"])
def test_bounds_may_be_too_wide_to_bind(name: str) -> None:
    """rho = 0.01 and 5,000 with A = +-1: nothing is clipped, each gradient is -rho A / 2 (kimi's 2 is the prompt's tokens)."""
    logp = [[math.log(0.01)], [math.log(5000)]]
    known = REGISTRY[name].entry.parameters.model_fields
    wide = {"eps_low": 2, "eps_high": 1e6, "pop_high": 1e6, "alpha": 1e-6, "beta": 1e6, "tau": 0}
    params = {key: value for key, value in wide.items() if key in known}
    zero = [[0.0], [0.0]]
    found = calculate(
        name, {"logp": logp, "logp_old": zero, "logp_roll": zero, "advantages": [1, -1], "params": params}
    )
    assert [row[0] for row in found["grad_logp"]] == pytest.approx([-0.005, 2500])


@pytest.mark.parametrize("name", POLICIES)
def test_padding_changes_nothing(name: str) -> None:
    case = random_case(3, loose(name))
    padded = {
        key: [row + [0 if key == "mask" else 123.0] * (8 - len(row)) for row in value]
        if key == "mask" or key.startswith("logp")
        else value
        for key, value in case.items()
    }
    found, expected = calculate(name, padded), calculate(name, case)
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-13)
    assert found["diagnostics"] == pytest.approx(expected["diagnostics"], rel=1e-13)
    for row, other in zip(found["grad_logp"], expected["grad_logp"], strict=True):
        assert row == pytest.approx(other + [0] * (8 - len(other)), rel=1e-13)


@pytest.mark.parametrize("name", POLICIES)
@settings(deadline=None, max_examples=20)
@given(order=st.permutations(range(5)), seed=st.integers(0, 99))
def test_the_order_of_the_responses_does_not_matter(name: str, order: list[int], seed: int) -> None:
    case = random_case(seed, loose(name))
    moved = {key: [value[i] for i in order] if isinstance(value, list) else value for key, value in case.items()}
    found, expected = calculate(name, moved), calculate(name, case)
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-10, abs=1e-12)
    for place, i in enumerate(order):
        assert found["grad_logp"][place] == pytest.approx(expected["grad_logp"][i], rel=1e-9, abs=1e-12)


def step_of(case: dict[str, Any], name: str, dtype: torch.dtype) -> tuple[ObjectiveBatch, torch.Tensor, Any]:
    """The case as a whole training step, with the log-probabilities through which the gradient flows."""
    params = REGISTRY[name].params(**case["params"])
    width = 6

    def pad(rows: list[list[float]], fill: float) -> torch.Tensor:
        return torch.tensor([row + [fill] * (width - len(row)) for row in rows], dtype=dtype)

    rewards = torch.tensor([math.nan if r is None else r for r in case["rewards"]], dtype=dtype)
    groups = torch.tensor(case["groups"])
    has_advantages = "rewards" in REGISTRY[name].entry.needs
    fields: dict[str, Any] = {f"{key}_BT": pad(case[key], math.nan) for key in case if key.startswith("logp_")}
    step = ObjectiveBatch(
        logp_BT=pad(case["logp"], math.nan),
        mask_BT=pad(case["mask"], 0),
        advantages_B=REGISTRY[name].advantages(rewards, groups, params) if has_advantages else None,
        groups_B=groups,
        rewards_B=rewards,
        **fields,
    )
    return step, pad(case["logp"], math.nan).requires_grad_(), params


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", POLICIES)
def test_micro_batches_accumulate_to_the_gradient_of_the_step(name: str, seed: int, dtype: torch.dtype) -> None:
    """Groups are divided on purpose, and the narrow micro-batch is cut to its own width."""
    step, logp, params = step_of(random_case(seed, loose(name)), name, dtype)
    loss = REGISTRY[name].loss
    (whole,) = torch.autograd.grad(loss(step.rows(torch.arange(5), logp), params).loss, logp)
    parts = []
    for rows, width in (([0, 3], 6), ([2], 5), ([4, 1], 3)):
        index = torch.tensor(rows)
        part = loss(step.rows(index, logp[index, :width]), params).loss
        part.backward()
        parts.append(part.detach())
    torch.testing.assert_close(logp.grad, whole, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=1e-7)
    torch.testing.assert_close(torch.stack(parts).sum(), loss(step.rows(torch.arange(5), logp), params).loss.detach())
    assert not whole.isnan().any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_widened_before_ratios_are_taken(dtype: torch.dtype) -> None:
    logp = torch.tensor([[-1.0, -2.0]], dtype=dtype, requires_grad=True)
    batch = ObjectiveBatch(
        logp_BT=logp, mask_BT=torch.ones(1, 2), advantages_B=torch.ones(1), logp_old_BT=torch.tensor([[-1.0, -2.0]])
    )
    result = REGISTRY["grpo"].loss(batch, REGISTRY["grpo"].params())
    result.loss.backward()
    assert result.loss.dtype == torch.float32
    assert logp.grad is not None and logp.grad.tolist() == [[-0.5, -0.5]]


@pytest.mark.parametrize("name", POLICIES)
def test_only_the_policys_log_probabilities_get_a_gradient(name: str) -> None:
    case = random_case(0, loose(name))
    step, logp, params = step_of(case, name, torch.float64)
    others = [getattr(step, f"{key}_BT").requires_grad_() for key in case if key.startswith("logp_")]
    REGISTRY[name].loss(step.rows(torch.arange(5), logp), params).loss.backward()
    assert all(other.grad is None for other in others)
    assert logp.grad is not None


@pytest.mark.parametrize("name", [n for n in POLICIES if issubclass(REGISTRY[n].entry.parameters, Aggregated)])
def test_aggregations_agree_where_all_responses_are_as_long(name: str) -> None:
    case = random_case(2, loose(name))
    case = {
        key: [v[:1] if isinstance(v, list) else v for v in value] if isinstance(value, list) else value
        for key, value in case.items()
    }
    case["mask"] = [[1]] * 5
    losses = {
        how: calculate(name, {**case, "params": {**loose(name), "aggregation": how, "max_tokens": 1}})["loss"]
        for how in ("sequence", "token", "constant")
    }
    assert losses["token"] == pytest.approx(losses["sequence"], rel=1e-12)
    assert losses["constant"] == pytest.approx(losses["sequence"], rel=1e-12)


def test_shapes_are_checked_before_anything_is_computed() -> None:
    logp = torch.zeros(2, 3)
    with pytest.raises(ObjectiveError, match=r"logp_old: has shape \(2, 4\); expected \(2, 3\)"):
        ObjectiveBatch(logp_BT=logp, mask_BT=torch.ones(2, 3), logp_old_BT=torch.zeros(2, 4))
    with pytest.raises(ObjectiveError, match=r"advantages: has shape \(3,\)"):
        ObjectiveBatch(logp_BT=logp, mask_BT=torch.ones(2, 3), advantages_B=torch.zeros(3))
    batch = ObjectiveBatch(logp_BT=logp, mask_BT=torch.ones(2, 3), advantages_B=torch.zeros(2))
    with pytest.raises(ObjectiveError, match="logp_old: missing"):
        REGISTRY["grpo"].loss(batch, REGISTRY["grpo"].params())
