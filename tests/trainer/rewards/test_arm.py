"""Rubric-ARM's rewards and variances: by hand, by simulation of the two steps, and invariances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trainer.rewards.arm import arm_variances, judge_reward, norm_bound, writer_reward


@pytest.mark.parametrize(
    ("verdict", "label", "format_ok", "reward"),
    [
        ("A", "A", True, 2),
        ("A", "A", False, 1),
        ("B", "A", True, 1),
        ("B", "A", False, 0),
        ("tie", "A", True, 1),  # there is only one choice
        (None, "A", False, 0),
        ("A much better", "A", True, 2),
        ("B better", "B much better", False, 1),
        ("A", "tie", True, None),
        ("tie", "tie", True, None),
    ],
)
def test_a_judge_earns_the_right_choice_and_the_format(verdict, label, format_ok, reward) -> None:
    assert judge_reward(verdict, label, format_ok) == reward


@pytest.mark.parametrize(
    ("verdict", "label", "reward"),
    [("A", "A", 1), ("B", "A", 0), ("tie", "B", 0), (None, "A", None), ("A", "tie", None)],
)
def test_a_writer_earns_the_right_choice_of_the_judge_and_nothing_is_made_of_no_verdict(verdict, label, reward) -> None:
    assert writer_reward(verdict, label) == reward


def test_variances_by_hand() -> None:
    # p(1-p) is 1/4 and 0; |u_r|^2 is 5 and 4; |u_j|^2 is 8 and 2
    found = arm_variances([0.5, 1], [[1, 2], [2, 0]], [[2, 2], [1, 1]])
    assert found.var_judge == pytest.approx((0.25 * 8 + 0) / 2)
    assert found.noise == pytest.approx((0.25 * 5 + 0) / 2)
    # p u_r is (0.5, 1) and (2, 0), mean (1.25, 0.5): 0.75^2 + 0.5^2 for both
    assert found.inconsistency == pytest.approx(0.8125)
    assert found.var_writer == pytest.approx(0.625 + 0.8125)
    assert found.c1 == pytest.approx(0.8125 / ((1.25 + 4) / 2))


def test_one_rubric_disagrees_with_no_other() -> None:
    found = arm_variances([0.5], [[3, 4]], [[1]])
    assert (found.inconsistency, found.c1, found.var_writer) == (0, 0, 0.25 * 25)


def test_what_a_noisier_writer_asks_for_by_hand() -> None:
    assert norm_bound(0.5, 1.0) == pytest.approx(0.5**0.5)
    assert norm_bound(0.5, 0.0) == 1 and norm_bound(1.0, 0.5) == 0
    assert norm_bound(1.0, 0.0) is None


def test_c1_is_undefined_where_nothing_is_pushed() -> None:
    assert arm_variances([0, 0.5], [[1], [0]], [[1], [1]]).c1 is None


@pytest.mark.parametrize(("u_r", "u_j", "said"), [([[1]], [[1], [1]], "u_r: "), ([[1], [1]], [1, 1], "u_j: ")])
def test_a_row_is_a_rubric(u_r, u_j, said) -> None:
    with pytest.raises(ValueError, match=f"^{said}"):
        arm_variances([0.5, 0.5], u_r, u_j)


def test_the_writer_s_variance_is_that_of_its_gradient_samples() -> None:
    """(18) by enumeration: rubric r is drawn uniformly, the judge is right with p(r), the sample is R u_r."""
    p, u_r = np.array([0.2, 0.7, 0.9]), np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 0.0]])
    outcomes = [(chance / 3, right * u) for q, u in zip(p, u_r, strict=True) for right, chance in ((1, q), (0, 1 - q))]
    mean = sum(weight * g for weight, g in outcomes)
    variance = sum(weight * ((g - mean) ** 2).sum() for weight, g in outcomes)
    assert arm_variances(p, u_r, u_r).var_writer == pytest.approx(variance)


shapes = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        hnp.arrays(float, n, elements=st.floats(0, 1)), hnp.arrays(float, (n, 3), elements=st.floats(-9, 9))
    )
)


@given(shapes, st.floats(0.1, 10))
def test_variances_grow_with_the_square_of_the_scores_and_forget_the_order(case, scale) -> None:
    p, u = case
    found, scaled, turned = (
        arm_variances(p, u, u),
        arm_variances(p, scale * u, u),
        arm_variances(p[::-1], u[::-1], u[::-1]),
    )
    assert scaled.var_writer == pytest.approx(scale**2 * found.var_writer, abs=1e-9)
    assert turned.var_writer == pytest.approx(found.var_writer)
    assert found.noise == pytest.approx(found.var_judge)
    assert found.c1 is None or -1e-9 <= found.c1 <= 1 + 1e-9
