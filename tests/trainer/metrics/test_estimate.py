"""Estimates: by hand, in extreme cases, and intervals that are wide enough."""

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics import estimate
from trainer.metrics.estimate import (
    bootstrap_estimate,
    bootstrap_mean,
    bootstrap_ratio,
    bootstrap_sums,
    clustered,
    proportion,
    undefined_estimate,
)


def test_wilson_by_hand() -> None:
    # (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n) with p = 0.8, n = 10, z = 1.96
    found = proportion(8, 10)
    assert (found.value, found.n) == (0.8, 10)
    assert (found.low, found.high) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    assert proportion(0, 10).low == 0 and proportion(10, 10).high == 1


def test_wilson_is_that_of_scipy_to_the_last_digit() -> None:
    for n in (1, 2, 3, 7, 10, 97, 1000, 123_457):
        for successes in sorted({0, 1, n // 3, n // 2, n - 1, n}):
            found, peer = proportion(successes, n), scipy.stats.binomtest(successes, n).proportion_ci(method="wilson")
            assert (found.value, found.low, found.high) == (successes / n, peer.low, peer.high)


def test_what_has_no_cases_has_a_reason_and_no_value() -> None:
    for found in (
        proportion(0, 0, missing=3),
        bootstrap_mean([], missing=3),
        undefined_estimate("no cases", missing=3),
    ):
        assert found.json() == {
            "value": None,
            "n": 0,
            "low": None,
            "high": None,
            "missing": 3,
            "undefined": "no cases",
        }


def test_one_case_has_a_value_and_no_interval() -> None:
    found = bootstrap_mean([0.5])
    assert (found.value, found.low, found.interval) == (0.5, None, "one case has no spread")


def test_the_interval_of_a_mean_is_near_the_normal_one() -> None:
    values = np.random.default_rng(0).normal(3, 2, size=400)
    found = bootstrap_mean(values)
    half = 1.96 * values.std() / 20
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.03)


def test_cases_of_a_cluster_are_drawn_together() -> None:
    values = [0.0, 1.0] * 10
    alone = bootstrap_mean(values)
    # every cluster has one value 20 times: this is as uncertain as 20 cases, not as 400
    repeated = bootstrap_ratio(np.repeat(values, 20), np.ones(400), clusters=np.repeat(np.arange(20), 20).tolist())
    assert repeated.n == 400
    assert (repeated.low, repeated.high) == (alone.low, alone.high)
    assert clustered(np.array([[1.0], [2.0], [4.0]]), ["a", "b", "a"]).tolist() == [[5.0], [2.0]]


@pytest.mark.parametrize("units", [1, 3, 7, 30, 70])
def test_samples_that_are_counted_together_are_those_that_are_drawn_one_by_one(monkeypatch, units) -> None:
    monkeypatch.setattr(estimate, "COUNTED_TOGETHER", 50)
    monkeypatch.setattr(estimate, "MAX_NUMBERS", 200)
    generator = np.random.default_rng(estimate.SEED)
    drawn = [np.bincount(generator.integers(units, size=units), minlength=units) for _ in range(40)]
    found = np.concatenate(list(estimate.resamples(units, draws=40)))
    assert found.dtype == np.float64 and (found == np.array(drawn)).all()


def test_blocks_of_resamples_change_nothing(monkeypatch) -> None:
    values = np.random.default_rng(1).normal(size=50)
    expected = bootstrap_mean(values)
    monkeypatch.setattr("trainer.metrics.estimate.MAX_NUMBERS", 2_345)
    assert bootstrap_mean(values).json() == pytest.approx(expected.json(), abs=1e-12)


def test_a_statistic_without_a_value_is_undefined_and_one_without_draws_has_no_interval() -> None:
    rows = np.array([[0.0], [0.0]])
    assert bootstrap_sums(rows, lambda s: s[:, 0] / s[:, 0], empty="0/0").undefined == "0/0"
    assert bootstrap_estimate(1.0, 3, np.array([np.nan, np.nan, 1.0])).interval == "undefined in most resamples"


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=30))
def test_the_interval_holds_the_value_and_stays_within_the_data(values: list[float]) -> None:
    found = bootstrap_mean(values)
    assert found.low is not None and found.high is not None and found.value is not None
    assert min(values) - 1e-9 <= found.low <= found.value <= found.high <= max(values) + 1e-9


@given(st.lists(st.booleans(), min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_no_value(right: list[bool], random) -> None:
    shuffled = random.sample(right, len(right))
    assert bootstrap_mean(shuffled).value == pytest.approx(bootstrap_mean(right).value)


def test_a_share_that_is_the_same_everywhere_is_not_certain() -> None:
    """All six clusters say 1. Resamples of them cannot vary, so Wilson's interval of six cases is used."""
    clusters = [n // 2 for n in range(12)]
    found = bootstrap_ratio([1.0] * 12, [1.0] * 12, clusters=clusters, share=True)
    known = proportion(6, 6)
    assert (found.value, found.n, found.high) == (1.0, 12, 1.0) and found.low == pytest.approx(known.low)
    halves = bootstrap_ratio([1.0, 0.0] * 6, [1.0] * 12, clusters=clusters, share=True)
    assert halves.low == pytest.approx(proportion(3, 6).low) and halves.high == pytest.approx(proportion(3, 6).high)
    assert bootstrap_mean([0.0] * 4, share=True).high == pytest.approx(proportion(0, 4).high)


def test_what_is_no_share_keeps_the_spread_of_its_resamples() -> None:
    assert (bootstrap_mean([0.0] * 4).low, bootstrap_mean([0.0] * 4).high) == (0.0, 0.0)
    varied = bootstrap_mean([0.0, 1.0] * 20, share=True)
    assert varied == bootstrap_mean([0.0, 1.0] * 20)


def test_several_cases_of_one_group_say_that_it_is_the_group_that_stands_alone() -> None:
    found = bootstrap_ratio([0.2, 0.4], [1.0, 1.0], clusters=["p", "p"])
    assert (found.n, found.low, found.interval) == (2, None, "one group has no spread")
