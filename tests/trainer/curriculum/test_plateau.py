"""The slope test by hand, and the choice of a temperature."""

import pytest

from trainer.curriculum import highest_good_temperature, level


def test_a_flat_line_is_level_and_a_straight_slope_is_not() -> None:
    assert level([0.5] * 8)
    assert not level([0.1 * step for step in range(8)])
    assert not level([-0.1 * step for step in range(8)])


def test_the_slope_is_compared_with_its_own_error() -> None:
    """w = 5: slope b = sum (x - 2)(y - m) / 10, error = sqrt(rest / 3 / 10), t(3) = 3.182.

    0, 1, 0, 1, 0 has b = 0. For 0, 2, 1, 3, 2: m = 1.6, b = 0.5, rest = 5.2 - 2.5 = 2.7, error = 0.3, bound = 0.955: level.
    For 0, 2, 3, 5, 6: m = 3.2, b = 1.5, rest = 22.8 - 22.5 = 0.3, error = 0.1, bound = 0.318: it rises.
    """
    assert level([0, 1, 0, 1, 0])
    assert level([0, 2, 1, 3, 2])
    assert not level([0, 2, 3, 5, 6])


def test_the_bound_is_that_of_students_t() -> None:
    """w = 4, t(2) = 4.303: y = b x + (e, -e, -e, e) has slope b and error sqrt(4 e^2 / 2 / 5) = 0.6325 e, so that b is level up to
    2.7214 e."""
    noise = (0.1, -0.1, -0.1, 0.1)
    assert level([0.2721 * x + e for x, e in enumerate(noise)])
    assert not level([0.2723 * x + e for x, e in enumerate(noise)])


def test_two_points_say_nothing() -> None:
    assert not level([])
    assert not level([0.5, 0.5])


@pytest.mark.parametrize(
    ("scores", "within", "expected"),
    [
        ({0.6: 0.50, 1.0: 0.496, 1.4: 0.40}, 0.01, 1.0),  # 0.495 is enough
        ({0.6: 0.50, 1.0: 0.494, 1.4: 0.40}, 0.01, 0.6),
        ({0.6: 0.50, 1.0: 0.495}, 0.01, 1.0),  # exactly 1% less
        ({0.6: -0.50, 1.0: -0.504, 1.4: -0.6}, 0.01, 1.0),  # of a negative best, 1% of its size
        ({0.6: 0.5, 1.0: None}, 0.01, 0.6),
        ({0.6: 0.4, 1.0: 0.5}, 0.0, 1.0),
    ],
)
def test_the_warmest_that_costs_nothing_is_chosen(
    scores: dict[float, float | None], within: float, expected: float
) -> None:
    assert highest_good_temperature(scores, within) == expected


def test_without_a_score_nothing_is_chosen() -> None:
    assert highest_good_temperature({0.6: None, 1.0: None}, 0.01) is None
