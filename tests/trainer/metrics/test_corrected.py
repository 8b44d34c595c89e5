"""Scores of a judge corrected by those of people: hand-worked numbers, the coverage of the interval, the number of labels that it saves."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from trainer.metrics.corrected import FEWEST, corrected_mean, more_labels

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator], tuple[Floats, Floats, float]]
STUDIES = 10_000
LABELS, UNITS = 100, 1000


def columns(y: Floats, f: Floats, labels: int) -> tuple[list[float | None], list[float | None]]:
    return [*y[:labels].tolist(), *[None] * (len(y) - labels)], f.tolist()


def test_hand_worked() -> None:
    # Y = 1 0 1 0, f = 1 0 1 1 and, of four others, 1 1 0 1: mean(Y) .5, Cov(Y, f) 1/6, Var(f) of all eight 3/14
    people: list[float | None] = [1, 0, 1, 0, None, None, None, None]
    found = corrected_mean(people, [1, 0, 1, 1, 1, 1, 0, 1])
    assert found.weight == pytest.approx((1 / 6) / (2 * 3 / 14))
    assert found.corrected.value == pytest.approx(0.5), "the judge's mean is the same in both parts"
    assert found.judge == 0.75 and found.people.value == 0.5 and found.corrected.n == 4
    assert found.corrected.low is None and "20" in found.corrected.interval


def test_a_judge_that_is_too_kind_everywhere_is_corrected() -> None:
    rng = np.random.default_rng(3)
    y = rng.random(400)
    found = corrected_mean(*columns(y, y + 0.3 + 0.01 * rng.normal(size=400), 60))
    assert found.judge == pytest.approx(y.mean() + 0.3, abs=0.01)
    assert found.corrected.low is not None and found.corrected.high is not None and found.spared is not None
    assert found.corrected.low < y.mean() < found.corrected.high
    assert found.people.low is not None and found.people.high is not None
    narrower = (found.corrected.high - found.corrected.low) / (found.people.high - found.people.low)
    assert narrower**2 == pytest.approx(1 - found.spared, rel=0.1) and found.spared > 0.8


def test_a_judge_that_says_the_same_of_all_leaves_the_mean_of_people() -> None:
    y = np.random.default_rng(0).random(50)
    found = corrected_mean(*columns(np.concatenate([y, y]), np.full(100, 0.5), 50))
    assert found.weight == 0 and found.correlation is None and found.spared is None
    assert found.corrected.value == pytest.approx(found.people.value)


def test_what_nobody_can_know_has_no_interval_and_says_why() -> None:
    assert corrected_mean([None, None], [1.0, 0.0]).corrected.undefined == "people have scored none of them"
    same = [1.0, 0.0] * 20
    agreeing = corrected_mean([*same, None, None], [*same, 1.0, 0.0])
    assert agreeing.corrected.low is None and "differ on fewer than 5" in agreeing.corrected.interval
    assert more_labels([*same, None, None], [*same, 1.0, 0.0], 0.1) is None
    for same_score in (1.0, 0.1):  # the variance of twenty tenths is not exactly 0
        alike: list[float | None] = [same_score] * 20
        constant = corrected_mean([*alike, None, None], [0.3, 0.6] * 11)
        assert constant.corrected.low is None and "same score" in constant.corrected.interval
        assert constant.people.low is None and constant.correlation is None
        assert more_labels([*alike, None, None], [0.3, 0.6] * 11, 0.1) is None
    lost = corrected_mean([1.0, 0.0, None], [None, 1.0, 0.0])
    assert lost.corrected.missing == 1 and lost.corrected.n == 1
    with pytest.raises(ValueError, match="3 scores of people but 2"):
        corrected_mean([1, 2, 3], [1, 2])


def test_settled_units_are_known_and_no_part_of_the_draw() -> None:
    # 4 units as by hand above, and 4 that programs decide, of mean .5: each mean takes half of both
    people: list[float | None] = [1, 1, 1, 0, None, None, None, None]
    judge = [1.0, 0, 1, 1, 1, 1, 0, 1]
    plain, beside = corrected_mean(people, judge), corrected_mean(people, judge, [1.0, 0.0] * 4)
    assert plain.corrected.value is not None and plain.people.value == 0.75 and plain.judge == 0.75
    assert beside.corrected.value == pytest.approx((plain.corrected.value + 0.5) / 2)
    assert (beside.people.value, beside.judge, beside.corrected.n) == (0.625, 0.625, 4)
    assert (beside.weight, beside.correlation, beside.spared) == (plain.weight, plain.correlation, plain.spared)


def test_settled_units_narrow_the_interval_by_their_share() -> None:
    y, f, _ = share(np.random.default_rng(1))
    labels = columns(y, f, 100)
    plain, beside = corrected_mean(*labels).corrected, corrected_mean(*labels, [1.0] * UNITS).corrected
    assert plain.low is not None and plain.high is not None and beside.low is not None and beside.high is not None
    assert beside.high - beside.low == pytest.approx((plain.high - plain.low) / 2)
    assert more_labels(*labels, 0.02, UNITS) == more_labels(*labels, 0.04)
    assert "nothing to grade" in corrected_mean([], [], [1.0]).corrected.undefined


def share(rng: np.random.Generator) -> tuple[Floats, Floats, float]:
    """A success or a failure. The judge sees 92 of 100 successes, and says success for 12 of 100 failures."""
    y = rng.random(UNITS) < 0.7
    return y.astype(float), np.where(y, rng.random(UNITS) < 0.92, rng.random(UNITS) < 0.12).astype(float), 0.7


def score(rng: np.random.Generator) -> tuple[Floats, Floats, float]:
    """A score from 0 to 1 that the judge sees with noise, and half a point too high on the logit scale."""
    z, noise = rng.normal(size=UNITS), rng.normal(size=UNITS)
    return scipy.special.expit(z), scipy.special.expit(0.8 * z + 0.6 * noise + 0.5), 0.5


@pytest.mark.slow
@pytest.mark.parametrize("draw", [share, score])
def test_intervals_of_ten_thousand_studies_hold_the_truth_and_spare_half_the_labels(draw: Draw) -> None:
    hits, told, width, alone = 0, 0, 0.0, 0.0
    for y, f, truth in studies(draw):
        found = corrected_mean(*columns(y, f, LABELS))
        low, high = found.corrected.low, found.corrected.high
        if low is None or high is None or found.people.low is None or found.people.high is None:
            continue
        told += 1
        hits += low <= truth <= high
        width += high - low
        alone += found.people.high - found.people.low
    assert told >= 0.95 * STUDIES, "the others have seen too few differences to tell"
    assert 0.94 <= hits / told <= 0.96
    assert (width / alone) ** 2 <= 0.5, "of labels for the same width"


def studies(draw: Draw) -> Iterator[tuple[Floats, Floats, float]]:
    rng = np.random.default_rng(20_231)
    for _ in range(STUDIES):
        yield draw(rng)


def test_as_many_more_labels_as_foretold_make_the_interval_as_narrow() -> None:
    rng = np.random.default_rng(1)
    y, f, _ = share(rng)
    first = more_labels(*columns(y, f, 50), 0.05)
    assert first is not None and first > 0
    found = corrected_mean(*columns(y, f, 50 + first)).corrected
    assert found.low is not None and found.high is not None
    assert (found.high - found.low) / 2 == pytest.approx(0.05, rel=0.15)
    assert more_labels(*columns(y, f, 50 + first), 0.08) == 0
    assert more_labels(*columns(y, f, 50), 0.001) is None, "all units would not do"
    assert more_labels(*columns(y, f, FEWEST - 1), 0.05) is None
