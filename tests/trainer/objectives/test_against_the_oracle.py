"""Loss and gradient of every objective compared with the plain NumPy oracle, on random ragged batches with gaps."""

from typing import Any

import numpy as np
import pytest

from trainer.objectives.calculator import calculate

from . import oracle

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("grpo", {}),
    ("grpo", {"eps_low": 0.1, "eps_high": 0.3, "kl_beta": 0.05}),
    ("grpo", {"decoupled": True, "advantage": "leave_one_out"}),
    ("grpo", {"aggregation": "token", "kl_beta": 0.3, "decoupled": True}),
    ("grpo", {"advantage": "batch"}),
    ("grpo", {"dual_clip": 1.1, "eps_high": 0.1}),
    ("gspo", {"dual_clip": 1.05, "eps_low": 0.05, "eps_high": 0.02}),
    ("dapo", {"decoupled": True, "weight_cap": 1.05}),
    ("dapo", {"decoupled": True, "weight_cap": 1e9}),
    ("dr_grpo", {"max_tokens": 9}),
    ("dr_grpo", {"max_tokens": 5, "kl_beta": 0.1}),
    ("dapo", {}),
    ("dapo", {"advantage": "leave_one_out"}),
    ("gspo", {}),
    ("gspo", {"eps_low": 0.05, "eps_high": 0.1}),
    ("gspo", {"aggregation": "token", "eps_low": 0.2, "eps_high": 0.2, "kl_beta": 0.1}),
    ("icepop", {}),
    ("icepop", {"pop_high": 1.2}),
    ("icepop", {"pop_mode": "weight", "pop_low": 0.8, "pop_high": 1.5}),
    ("icepop", {"level": "sequence", "pop_mode": "weight", "pop_low": 0.9, "pop_high": 1.1}),
    ("icepop", {"aggregation": "constant", "max_tokens": 6}),
    ("misc", {}),
    ("misc", {"eps_low": 0.2, "eps_high": 0.3, "pop_low": 0.8, "pop_high": 1.3}),
    ("misc", {"pop_mode": "mask", "pop_high": 1.1, "eps_low": 0.5, "eps_high": 0.5}),
    ("double_sided", {}),
    ("double_sided", {"eps_low": 0.05, "eps_high": 0.1, "advantage": "group_std", "aggregation": "sequence"}),
    ("kimi", {}),
    ("kimi", {"alpha": 0.9, "beta": 1.05, "tau": 0.5}),
    ("oapl", {}),
    ("oapl", {"beta1": 0.25, "beta2": 0.5}),
    ("distill", {}),
    ("distill", {"pop_mode": "weight", "pop_low": 0.9, "pop_high": 1.3, "aggregation": "token"}),
    ("sft", {}),
    ("sft", {"aggregation": "sequence"}),
]


def random_case(seed: int, params: dict[str, Any]) -> oracle.Case:
    """Five responses to two prompts: ragged, with holes in the masks, an empty response and a missing reward."""
    rng = np.random.default_rng(seed)
    lengths = [4, 2, 5, 1, 3]

    def rows(base: list[list[float]] | None = None, spread: float = 0.25) -> list[list[float]]:
        if base is None:
            return [rng.uniform(-3, -0.1, n).tolist() for n in lengths]
        return [(np.array(row) + rng.normal(0, spread, len(row))).tolist() for row in base]

    logp = rows()
    mask = [rng.integers(0, 2, n).tolist() for n in lengths]
    mask[0][0] = mask[1][1] = mask[2][2] = mask[4][0] = 1
    mask[3] = [0]
    rewards: list[float | None] = rng.choice([0.0, 0.25, 0.5, 1.0], 5).tolist()
    if seed % 2:
        rewards[2] = None
    return {
        "logp": logp,
        "logp_old": rows(logp),
        "logp_roll": rows(logp, 0.15),
        "logp_ref": rows(logp, 0.5),
        "logp_teacher": rows(logp, 0.5),
        "mask": mask,
        "rewards": rewards,
        "groups": [7, 3, 7, 3, 7],
        "params": params,
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_loss_and_gradient(name: str, params: dict[str, Any], seed: int) -> None:
    case = random_case(seed, params)
    found = calculate(name, case)
    assert found["loss"] == pytest.approx(oracle.loss(name, case), rel=1e-12, abs=1e-14)
    for i, row in enumerate(found["grad_logp"]):
        assert len(row) == len(case["logp"][i])
        for t, value in enumerate(row):
            expected = oracle.slope(lambda c: oracle.loss(name, c), case, i, t)
            assert value == pytest.approx(expected, rel=1e-5, abs=1e-8), (i, t)


@pytest.mark.parametrize("seed", range(4))
def test_the_advantages_it_prints(seed: int) -> None:
    for how in ("group_std", "centred", "leave_one_out", "batch"):
        case = random_case(seed, {"advantage": how})
        found = [np.nan if a is None else a for a in calculate("grpo", case)["advantages"]]
        np.testing.assert_allclose(found, oracle.advantages(case, how), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_misc_with_token_gradient_has_the_same_value_and_its_own_gradient(seed: int) -> None:
    params = {"eps_low": 0.3, "eps_high": 0.3, "pop_low": 0.8, "pop_high": 1.2}
    case = random_case(seed, params)
    plain = calculate("misc", case)
    found = calculate("misc", {**case, "params": {**params, "token_gradient": True}})
    assert found["loss"] == pytest.approx(plain["loss"], rel=1e-12, abs=1e-15)
    included = [i for i, r in enumerate(case["rewards"]) if r is not None]
    for i in range(5):
        tokens = oracle.positions(case, i)
        a = found["advantages"][i] or 0.0
        log_ratios = [case["logp"][i][t] - case["logp_old"][i][t] for t in tokens]
        s = float(np.exp(np.mean(log_ratios))) if tokens else 1.0
        live = 0.0 if (a > 0 and s > 1.3) or (a < 0 and s < 0.7) else 1.0
        for t in range(len(case["logp"][i])):
            if t not in tokens or i not in included:
                assert found["grad_logp"][i][t] == 0
                continue
            weight = oracle.popped(
                float(np.exp(case["logp_old"][i][t] - case["logp_roll"][i][t])), {**params, "pop_mode": "weight"}
            )
            expected = -live * weight * s * a / len(tokens) / len(included)
            assert found["grad_logp"][i][t] == pytest.approx(expected, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_dpo(seed: int) -> None:
    one, two = random_case(seed, {}), random_case(seed + 10, {})
    sides = {
        side: {key: source[key] for key in ("logp", "logp_ref", "mask")}
        for side, source in (("chosen", one), ("rejected", two))
    }
    found = calculate("dpo", {**sides, "params": {"beta": 0.3, "sft_weight": 0.15}})
    assert found["loss"] == pytest.approx(oracle.dpo(sides, 0.3, 0.15), rel=1e-12)
    for side in ("chosen", "rejected"):
        for i, row in enumerate(found["grad_logp"][side]):
            for t, value in enumerate(row):
                loss: Any = lambda c, side=side: oracle.dpo({**sides, side: c}, 0.3, 0.15)  # noqa: E731
                expected = oracle.slope(loss, sides[side], i, t)
                assert value == pytest.approx(expected, rel=1e-5, abs=1e-8)
