"""The importance of a sweep's keys, and the places of its lines."""

from typing import Any

import pytest

from webapp.experiments.sweeps import importance
from webapp.experiments.sweeps.space import SweepAxis

TWO = SweepAxis("a", values=("x", "y"))
RANGE = SweepAxis("b", low=0.0, high=1.0)


def test_a_key_that_decides_takes_the_whole_variance_and_stands_first():
    trials: list[Any] = [({"a": "xy"[i % 2], "b": i / 16}, float(i % 2) + 0.001 * i) for i in range(16)]
    first, second = importance.weights((RANGE, TWO), trials)
    assert first.path == "a" and first.share > 0.99 and first.p < 1e-6
    assert second.share < 0.1 and second.p > 0.5


def test_by_hand():
    # means 1 and 3, all groups of four; total 8 + 4 x 2 x 0.5 ... : within 4, between 8, error 4 / 6
    trials: list[Any] = [({"a": "x"}, v) for v in (0.0, 1.0, 1.0, 2.0)] + [
        ({"a": "y"}, v) for v in (2.0, 3.0, 3.0, 4.0)
    ]
    [found] = importance.weights((TWO,), trials)
    assert found.share == pytest.approx((8 - 4 / 6) / 12)
    assert found.p == pytest.approx(0.01332, abs=1e-4)  # F = 12 with 1 and 6 degrees of freedom


def test_with_few_trials_or_equal_values_nothing_is_said_and_why():
    few: list[Any] = [({"a": "x"}, 1.0), ({"a": "y"}, 2.0)]
    assert importance.weights((TWO,), few)[0].undefined == "needs 8 trials with a value for every seed"
    same: list[Any] = [({"a": "xy"[i % 2]}, 1.0) for i in range(8)]
    assert importance.weights((TWO,), same)[0].undefined == "all trials have the same value"
    single: list[Any] = [({"a": "x"}, float(i)) for i in range(8)]
    assert importance.weights((TWO,), single)[0].share is None
