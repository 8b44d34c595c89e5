"""Every objective on numbers that are small enough to work on paper, with the calculation beside each.

Ratios are written as logarithms: log 2 over logp_old 0 is the ratio 2. Unless a mask says otherwise, all tokens count.
"""

from math import exp, log, sqrt
from typing import Any

import pytest

from trainer.objectives.calculator import calculate

L = log


def check(name: str, record: dict[str, Any], loss: float, grad: list[list[float]] | None = None) -> dict[str, Any]:
    found = calculate(name, record)
    assert found["loss"] == pytest.approx(loss, rel=1e-12, abs=1e-15)
    if grad is not None:
        assert [len(row) for row in found["grad_logp"]] == [len(row) for row in grad]
        for row, expected in zip(found["grad_logp"], grad, strict=True):
            assert row == pytest.approx(expected, rel=1e-12, abs=1e-15)
    return found


# Ratios: response 0 has 1.1 and 1.5, response 1 has 0.5. Rewards 1 and 0: group_std gives A = +1, -1; centred +-0.5.
PAIR: dict[str, Any] = {
    "logp": [[L(1.1), L(1.5)], [L(0.5)]],
    "logp_old": [[0, 0], [0]],
    "rewards": [1, 0],
}


def test_grpo() -> None:
    # response 0: min(1.1, 1.1) + min(1.5, clip 1.2) = 2.3 over 2 tokens = 1.15
    # response 1: min(-0.5, clip 0.8 -> -0.8) = -0.8
    # loss = -(1.15 - 0.8) / 2; only the token at 1.1 is not clipped: gradient -1.1 / 2 / 2
    found = check("grpo", PAIR, -0.175, [[-0.275, 0], [0]])
    assert found["advantages"] == [1, -1]
    assert found["diagnostics"]["clip_share"] == pytest.approx(2 / 3)
    assert found["diagnostics"]["ratio_raw"] == pytest.approx((1.1 + 1.5 + 0.5) / 3)
    assert found["diagnostics"]["ratio_masked"] == pytest.approx(1.1)


def test_grpo_does_not_clip_against_the_advantage() -> None:
    # A = -1 at ratio 1.5: min(-1.5, -1.2) = -1.5, gradient +1.5 / 2 responses. A = +1 at 0.5: min(0.5, 0.8) = 0.5
    record = {"logp": [[L(0.5)], [L(1.5)]], "logp_old": [[0], [0]], "rewards": [1, 0]}
    check("grpo", record, -(0.5 - 1.5) / 2, [[-0.25], [0.75]])


def test_grpo_with_kl() -> None:
    # ref 0, logp log 2: k3 = 1/2 - log(1/2) - 1 = log 2 - 0.5; with equal rewards only the penalty remains.
    # derivative of k3 in logp = 1 - exp(ref - logp) = 0.5
    record = {
        "logp": [[L(2)]],
        "logp_old": [[L(2)]],
        "logp_ref": [[0]],
        "rewards": [1],
        "params": {"kl_beta": 0.1},
    }
    found = check("grpo", record, 0.1 * (L(2) - 0.5), [[0.05]])
    assert found["diagnostics"]["kl"] == pytest.approx(L(2) - 0.5)


def test_grpo_decoupled_weighs_by_trainer_over_sampler() -> None:
    # weights pi_old / pi_roll: 2 and 0.5, ratios 1: loss = -(2 * 1 + 0.5 * -1) / 2
    record = {
        "logp": [[L(0.4)], [L(0.4)]],
        "logp_old": [[L(0.4)], [L(0.4)]],
        "logp_roll": [[L(0.2)], [L(0.8)]],
        "rewards": [1, 0],
        "params": {"decoupled": True},
    }
    check("grpo", record, -0.75, [[-1], [0.25]])


def test_grpo_with_a_cap_takes_no_larger_weight() -> None:
    # as above, the weight 2 is cut to 1.5: loss = -(1.5 * 1 + 0.5 * -1) / 2
    record = {
        "logp": [[L(0.4)], [L(0.4)]],
        "logp_old": [[L(0.4)], [L(0.4)]],
        "logp_roll": [[L(0.2)], [L(0.8)]],
        "rewards": [1, 0],
        "params": {"decoupled": True, "weight_cap": 1.5},
    }
    check("grpo", record, -0.5, [[-0.75], [0.25]])


def test_grpo_caps_weights_at_2_unless_told_otherwise() -> None:
    # weights pi_old / pi_roll: 4 and 0.5; capped: loss = -(2 * 1 + 0.5 * -1) / 2, without: -(4 - 0.5) / 2
    record = {
        "logp": [[L(0.8)], [L(0.4)]],
        "logp_old": [[L(0.8)], [L(0.4)]],
        "logp_roll": [[L(0.2)], [L(0.8)]],
        "rewards": [1, 0],
        "params": {"decoupled": True},
    }
    check("grpo", record, -0.75, [[-1], [0.25]])
    check("grpo", {**record, "params": {"decoupled": True, "weight_cap": 1e9}}, -1.75, [[-2], [0.25]])


def test_grpo_with_a_dual_clip_pushes_a_bad_token_no_further() -> None:
    # A = 1 and -1. Ratios 1 and 5: without the clip the bad token counts -5, with c = 3 it counts -3 and has no gradient
    record = {"logp": [[0], [L(5)]], "logp_old": [[0], [0]], "rewards": [1, 0]}
    check("grpo", record, -(1 - 5) / 2, [[-0.5], [2.5]])
    check("grpo", {**record, "params": {"dual_clip": 3}}, -(1 - 3) / 2, [[-0.5], [0]])


def test_dr_grpo() -> None:
    # centred A = +-0.5; sum = 0.5 * (1.1 + 1.2) - 0.5 * 0.8 = 0.75; divisor 2 responses x 4 tokens
    check("dr_grpo", {**PAIR, "params": {"max_tokens": 4}}, -0.75 / 8, [[-0.55 / 8, 0], [0]])


def test_dapo() -> None:
    # eps_high 0.28: 1.1 + 1.28 - 0.8 = 1.58 over 3 tokens
    check("dapo", PAIR, -1.58 / 3, [[-1.1 / 3, 0], [0]])


def test_gspo() -> None:
    # ratios 1.2 and 0.8 -> s_0 = sqrt(0.96); s_1 = 1.1
    # eps 0.2: both inside; loss = -(s_0 - 1.1) / 2; each token of response 0 gets s_0 / 2 tokens / 2 responses
    s = sqrt(0.96)
    record = {
        "logp": [[L(1.2), L(0.8)], [L(1.1)]],
        "logp_old": [[0, 0], [0]],
        "rewards": [1, 0],
        "params": {"eps_low": 0.2, "eps_high": 0.2},
    }
    check("gspo", record, -(s - 1.1) / 2, [[-s / 4, -s / 4], [0.55]])


def test_gspo_clips_the_whole_response() -> None:
    # s_0 = sqrt(4) = 2 > 1.2 although the second token's ratio is 1
    record = {
        "logp": [[L(4), 0], [0]],
        "logp_old": [[0, 0], [0]],
        "rewards": [1, 0],
        "params": {"eps_low": 0.2, "eps_high": 0.2},
    }
    check("gspo", record, -(1.2 - 1) / 2, [[0, 0], [0.5]])


# Mismatch pi_old / pi_roll: 2 (on the bound), 2.5 (outside), 1; ratios pi / pi_old: 1.1, 1, 1. A = +1, -1.
MISMATCH: dict[str, Any] = {
    "logp": [[L(1.1), 0], [0]],
    "logp_old": [[0, 0], [0]],
    "logp_roll": [[L(0.5), L(0.4)], [0]],
    "rewards": [1, 0],
}


def test_icepop_mask() -> None:
    # response 0: (1 * 1.1 + 0 * 1) / 2: the silenced token still counts in |y|
    found = check("icepop", MISMATCH, -(0.55 - 1) / 2, [[-0.275, 0], [0.5]])
    assert found["diagnostics"]["pop_share"] == pytest.approx(1 / 3)
    assert found["diagnostics"]["mismatch_raw"] == pytest.approx(5.5 / 3)
    assert found["diagnostics"]["mismatch_masked"] == pytest.approx(1.5)
    # k - log k - 1 of 2, 2.5 and 1
    assert found["diagnostics"]["mismatch_kl_raw"] == pytest.approx((2.5 - L(2.0) - L(2.5)) / 3)
    assert found["diagnostics"]["mismatch_kl_masked"] == pytest.approx((1 - L(2.0)) / 2)
    assert found["diagnostics"]["mismatch_far_raw"] == pytest.approx(2.5)
    assert found["diagnostics"]["mismatch_far_masked"] == pytest.approx(2.0)


def test_icepop_weight() -> None:
    # response 0: (2 * 1.1 + 0) / 2 = 1.1
    check("icepop", {**MISMATCH, "params": {"pop_mode": "weight"}}, -(1.1 - 1) / 2, [[-0.55, 0], [0.5]])


def test_icepop_weight_with_free_bounds() -> None:
    # [0.9, 2.6]: both tokens weigh, (2 * 1.1 + 2.5) / 2 = 2.35
    params = {"pop_mode": "weight", "pop_low": 0.9, "pop_high": 2.6}
    check("icepop", {**MISMATCH, "params": params}, -(2.35 - 1) / 2, [[-0.55, -0.625], [0.5]])


def test_icepop_of_sequences() -> None:
    # k_0 = sqrt(2 * 2.5) = sqrt 5 > 2: response 0 is silenced, and still counts in the mean over responses
    check("icepop", {**MISMATCH, "params": {"level": "sequence"}}, 0.5, [[0, 0], [0.5]])


def test_misc() -> None:
    # weights 2, 0 -> mean 1; s_0 = sqrt 1.1 = 1.0488 inside 0.2; response 1: weight 1, s 1
    s = sqrt(1.1)
    params = {"eps_low": 0.2, "eps_high": 0.2}
    check("misc", {**MISMATCH, "params": params}, -(s - 1) / 2, [[-s / 4, -s / 4], [0.5]])


def test_misc_with_token_gradient() -> None:
    # the value is the same; token j gets M_j s / 2 tokens / 2 responses: M = 2, 0
    s = sqrt(1.1)
    params = {"eps_low": 0.2, "eps_high": 0.2, "token_gradient": True}
    check("misc", {**MISMATCH, "params": params}, -(s - 1) / 2, [[-s / 2, 0], [0.5]])


def test_double_sided() -> None:
    # r = 1.1 inside (0.8, 1.28); r = 2 dropped; r = 1. centred A = 0.5, -0.5
    # loss = -(1.1 * 0.5 * log 0.55 + 0 - 0.5 * log 0.3) / 3; gradients -f A / 3
    record = {
        "logp": [[L(0.55), L(0.4)], [L(0.3)]],
        "logp_roll": [[L(0.5), L(0.2)], [L(0.3)]],
        "rewards": [1, 0],
    }
    check("double_sided", record, -(0.55 * L(0.55) - 0.5 * L(0.3)) / 3, [[-0.55 / 3, 0], [0.5 / 3]])


def test_kimi() -> None:
    # alpha 0.5, beta 2, tau 0.1; prompt a: rho 1.5 and 3 (A = 0.5), 0.25 (A = -0.5), N = 3
    #   1.5 * 0.5 + 2 * 0.5 - 0.5 * 0.5 = 1.5, less 0.1 (log^2 1.5 + log^2 3 + log^2 0.25)
    # prompt b: one response, A = 0, rho 1: 0. Mean over two prompts.
    squares = L(1.5) ** 2 + L(3) ** 2 + L(0.25) ** 2
    record = {
        "logp": [[L(1.5), L(3)], [0], [L(0.25)]],
        "logp_roll": [[0, 0], [0], [0]],
        "rewards": [1, 5, 0],
        "groups": ["a", "b", "a"],
        "params": {"alpha": 0.5, "beta": 2.0, "tau": 0.1},
    }
    grad: list[list[float]] = [
        [-(0.75 - 0.2 * L(1.5)) / 6, 0.2 * L(3) / 6],
        [0],
        [0.2 * L(0.25) / 6],
    ]
    check("kimi", record, -(1.5 - 0.1 * squares) / 3 / 2, grad)


def test_oapl() -> None:
    # V = log((e + 1) / 2); beta2 0.1; log-ratios: log 2 + log 3 = log 6, and log 0.5
    v = L((exp(1) + 1) / 2)
    e0, e1 = 0.1 * L(6) - (1 - v), 0.1 * L(0.5) - (0 - v)
    record = {
        "logp": [[L(2), L(3)], [L(0.5)]],
        "logp_roll": [[0, 0], [0]],
        "rewards": [1, 0],
        "params": {"beta1": 1, "beta2": 0.1},
    }
    found = check("oapl", record, (e0**2 + e1**2) / 2, [[0.1 * e0, 0.1 * e0], [0.1 * e1]])
    assert found["advantages"] == pytest.approx([1 - v, -v])


@pytest.mark.parametrize(("beta1", "value"), [(0, 1.0), (1e-9, 1.0), (1e12, 0.25)])
def test_oapl_at_the_limits_of_beta1(beta1: float, value: float) -> None:
    record = {"logp": [[0.0]] * 4, "logp_roll": [[0.0]] * 4, "rewards": [1, 0, 0, 0], "params": {"beta1": beta1}}
    found = calculate("oapl", record)
    assert found["advantages"] == pytest.approx([1 - value, -value, -value, -value], abs=1e-8)


def test_distill() -> None:
    # A = log teacher - log student: log(0.6 / 0.3) = log 2 at ratio 1, mismatch 1; log(0.1 / 0.5) = -log 5 at ratio 2
    # A > 0: log 2; A < 0 at ratio 2: min(-2 log 5, -1.28 log 5) = -2 log 5. One response of two tokens.
    record = {
        "logp": [[L(0.3), L(0.5)]],
        "logp_old": [[L(0.3), L(0.25)]],
        "logp_roll": [[L(0.3), L(0.25)]],
        "logp_teacher": [[L(0.6), L(0.1)]],
    }
    found = check("distill", record, -(L(2) - 2 * L(5)) / 2, [[-L(2) / 2, L(5)]])
    assert found["advantages"][0] == pytest.approx([L(2), -L(5)])


def test_dpo() -> None:
    # c - ref_c = -3 + 4 = 1; r - ref_r = -2 + 1 = -1; times beta: 0.5 (1 - -1) = 1
    # -log sigmoid(1) = log(1 + e^-1); NLL of the chosen: 3 / 2 tokens. gradient: -sigmoid(-1) * 0.5 - 0.2 / 2
    record = {
        "chosen": {"logp": [[-1, -2]], "logp_ref": [[-2, -2]]},
        "rejected": {"logp": [[-2]], "logp_ref": [[-1]]},
        "params": {"beta": 0.5, "sft_weight": 0.2},
    }
    found = calculate("dpo", record)
    slope = 0.5 / (1 + exp(1))
    assert found["loss"] == pytest.approx(L(1 + exp(-1)) + 0.2 * 1.5)
    assert found["grad_logp"]["chosen"][0] == pytest.approx([-slope - 0.1, -slope - 0.1])
    assert found["grad_logp"]["rejected"][0] == pytest.approx([slope])


def test_dpo_in_every_spelling() -> None:
    sides = {
        "chosen": {"logp": [[-1, -2]], "logp_ref": [[-2, -2]]},
        "rejected": {"logp": [[-2]], "logp_ref": [[-1]]},
    }
    listed = {side: [{key: rows[0] for key, rows in part.items()}] for side, part in sides.items()}
    by_field = {key: {side: sides[side][key] for side in sides} for key in ("logp", "logp_ref")}
    by_row = {"logp": [[-2], [-1, -2]], "logp_ref": [[-1], [-2, -2]], "chosen": [1], "rejected": [0]}
    expected = calculate("dpo", sides)
    assert calculate("dpo", listed) == expected
    assert calculate("dpo", by_field) == expected
    found = calculate("dpo", by_row)
    assert found["loss"] == expected["loss"]
    assert found["grad_logp"] == [expected["grad_logp"]["rejected"][0], expected["grad_logp"]["chosen"][0]]


def test_bradley_terry() -> None:
    # differences 2 and -1, margin 0.5: log(1 + e^-1.5), log(1 + e^1.5)
    record = {"chosen": [3, 0], "rejected": [1, 1], "params": {"margin": 0.5}}
    found = calculate("bradley_terry", record)
    assert found["loss"] == pytest.approx((L(1 + exp(-1.5)) + L(1 + exp(1.5))) / 2)
    assert found["grad_logp"]["chosen"] == pytest.approx([-0.5 / (1 + exp(1.5)), -0.5 / (1 + exp(-1.5))])
    assert found["diagnostics"]["accuracy"] == 0.5
    by_row = {"rewards": [1, 3, 0], "chosen": [1, 2], "rejected": [0, 0], "params": {"margin": 0.5}}
    assert calculate("bradley_terry", by_row) == found
    assert calculate("bradley_terry", {"chosen": [3, 0], "rejected": [1, 1], "margins": [0.5, 0.5]})[
        "loss"
    ] == pytest.approx(found["loss"])


def test_sft_learns_the_masked_turns_only() -> None:
    record = {"logp": [[-9, -1, -2], [-3]], "mask": [[0, 1, 1], [1]]}
    check("sft", record, 2.0, [[0, -1 / 3, -1 / 3], [-1 / 3]])
