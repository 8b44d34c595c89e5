"""The dynamic budget: by hand, compared with exact fractions, and with every possible allocation."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.curriculum.budget import allocate, learning_value


def test_by_hand() -> None:
    # p = 0.5: 1/8, 1/24, 1/48 for the 1st, 2nd, 3rd; p = 0.9: 0.045, 0.015; p = 1: 0
    assert allocate([0.5, 0.9, 1.0], [0, 0, 0], 3, 0, 10) == [2, 1, 0]
    assert allocate([0.5, 0.9, 1.0], [0, 0, 0], 4, 0, 10) == [3, 1, 0]
    assert allocate([0.5, 0.9, 1.0], [0, 0, 0], 5, 1, 10) == [3, 1, 1]


def test_rollouts_from_before_count() -> None:
    assert allocate([0.5, 0.5], [4, 0], 3, 0, 10) == [0, 3]
    assert allocate([0.5, 0.5], [1, 0], 3, 0, 10) == [1, 2]


def test_ties_go_to_the_lower_index() -> None:
    assert allocate([0.5, 0.5, 0.5], [0, 0, 0], 4, 0, 10) == [2, 1, 1]
    assert allocate([0.9, 0.1], [0, 0], 1, 0, 10) == [1, 0]  # 0.9 x 0.1 and 0.1 x 0.9 differ by rounding
    assert allocate([0.0, 1.0], [0, 0], 5, 1, 3) == [3, 2]  # nothing to learn: the total is spent all the same


def test_bounds_hold() -> None:
    assert allocate([0.5, 1.0, 0.0], [0, 0, 0], 6, 1, 3) == [3, 2, 1]
    assert allocate([0.5, 0.2], [0, 0], 4, 2, 2) == [2, 2]
    assert allocate([0.5, 0.2], [0, 0], 0, 0, 2) == [0, 0]


@pytest.mark.parametrize(
    ("total", "low", "high", "said"),
    [(3, 2, 4, "total: "), (9, 2, 4, "total: 2 prompts"), (4, 3, 2, "high: 2 is below")],
)
def test_bounds_that_leave_no_allocation_are_refused(total, low, high, said) -> None:
    with pytest.raises(ValueError, match=f"^{said}"):
        allocate([0.5, 0.5], [0, 0], total, low, high)


def test_any_value_function_serves() -> None:
    assert allocate([0.1, 0.9], [0, 0], 3, 0, 5, value=lambda p, n: p) == [0, 3]


def exact(tenths: int, rollouts: int) -> Fraction:
    return Fraction(tenths * (10 - tenths), 100 * (rollouts + 1) * (rollouts + 2))


cases = st.integers(1, 4).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 10), min_size=n, max_size=n),
        st.lists(st.integers(0, 5), min_size=n, max_size=n),
        st.integers(0, 2),
        st.integers(0, 3),
        st.floats(0, 1),
    )
)


@given(cases)
def test_greedy_in_exact_fractions_agrees_and_no_allocation_is_worth_more(case) -> None:
    tenths, counts, low, room, share = case
    n, high = len(tenths), low + room
    total = low * n + round(share * room * n)
    found = allocate([t / 10 for t in tenths], counts, total, low, high)
    assert sum(found) == total and all(low <= each <= high for each in found)

    greedy = [low] * n
    for _ in range(total - low * n):
        open_ = [i for i in range(n) if greedy[i] < high]
        best = max(open_, key=lambda i: (exact(tenths[i], counts[i] + greedy[i]), -i))
        greedy[best] += 1
    assert found == greedy

    def worth(given_) -> Fraction:
        return sum((exact(tenths[i], counts[i] + k) for i in range(n) for k in range(given_[i])), Fraction(0))

    assert worth(found) == max(worth(each) for each in product(range(low, high + 1), repeat=n) if sum(each) == total)


def test_a_rollout_is_worth_the_fall_in_variance() -> None:
    for n in range(5):
        assert learning_value(0.3, n) == pytest.approx(0.21 / (n + 1) - 0.21 / (n + 2))
