"""The threshold, the halves and the intervals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from trainer.judges.local import wording
from trainer.logit_judge import calibration
from trainer.logit_judge.answering import shipped
from trainer.logit_judge.calibration import (
    ThresholdCalibration,
    best_threshold,
    calibrate,
    halves,
    rate_threshold,
    resampled,
)
from trainer.logit_judge.calls import USUAL
from trainer.metrics.estimate import wilson

NAMED: dict[str, Any] = {"model": "m", "digest": "d", "wording": "w", "verdicts": "made up"}


def test_the_border_lies_in_the_middle_of_the_best_gap() -> None:
    assert best_threshold(np.array([3.0, -2.0, 1.0, -1.0]), np.array([True, False, True, False])) == 0.0
    # one verdict is on the wrong side: borders at -1.5 and 2 both agree with 3 of 4, and the second has the wider gap
    margins, met = np.array([-2.0, -1.0, 1.0, 3.0]), np.array([False, True, False, True])
    assert best_threshold(margins, met) == 2.0


def balanced(margins: np.ndarray, met: np.ndarray, border: float) -> float:
    return float(((margins > border)[met].mean() + (margins <= border)[~met].mean()) / 2)


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=20))
def test_no_border_does_better(pairs: list[tuple[int, bool]]) -> None:
    margins, met = np.array([float(m) for m, _ in pairs]), np.array([t for _, t in pairs])
    if met.all() or not met.any():
        return
    ours = balanced(margins, met, best_threshold(margins, met))
    assert ours == pytest.approx(max(balanced(margins, met, float(border)) for border in np.arange(-5, 5, 0.5)))


def test_an_item_is_never_in_both_halves() -> None:
    items = [f"item {n // 3}" for n in range(300)]
    first = halves(items, 0)
    assert all(len(set(first[n : n + 3])) == 1 for n in range(0, 300, 3))
    assert first.mean() == 0.5
    assert (halves(items[::-1], 0) == first[::-1]).all()
    assert (halves(items, 1) != first).any()


def test_a_perfect_judge_with_a_lean_is_right_after_calibration() -> None:
    draw = np.random.default_rng(0)
    met = draw.random(200) < 0.7
    margins = np.where(met, 1.0, -1.0) + 10 + draw.random(200) / 2
    found = calibrate(margins, met.tolist(), [str(n) for n in range(200)], **NAMED)
    assert found.accuracy.value == found.balanced_accuracy.value == 1.0
    assert found.accuracy.low < 1.0, "a finite number of cases proves nothing beyond doubt"
    assert found.calibrated_on + found.accuracy.n == 200


def test_a_judge_that_knows_nothing_says_met_as_often_as_it_is_so() -> None:
    draw = np.random.default_rng(0)
    met, margins = draw.random(400) < 0.3, draw.normal(5, 1, 400)
    found = calibrate(margins, met.tolist(), [str(n) for n in range(400)], rule="rate", **NAMED)
    assert found.said is not None and found.met is not None
    assert abs(found.said.value - found.met.value) < 0.1 and found.said.low < 0.3 < found.said.high
    assert found.balanced_accuracy.low < 0.5 < found.balanced_accuracy.high


def test_the_rule_of_rates_leaves_the_same_share_above() -> None:
    margins = np.array([4.0, 1.0, 3.0, 2.0])
    assert rate_threshold(margins, np.array([True, False, False, False])) == 3.5
    assert rate_threshold(margins, np.array([True, False, True, False])) == 2.5


def test_a_calibration_is_read_as_it_was_written_and_older_ones_are_read_too(tmp_path: Path) -> None:
    found = calibrate([0.0, 1.0] * 20, [False, True] * 20, [str(n // 2) for n in range(40)], rule="rate", **NAMED)
    file = tmp_path / "calibration.json"
    found.save(file)
    assert ThresholdCalibration.load(file) == found
    older = json.loads(file.read_text())
    for name in ("rule", "said", "met"):
        del older[name]
    file.write_text(json.dumps(older))
    assert (ThresholdCalibration.load(file).said, ThresholdCalibration.load(file).rule) == (None, "accuracy")


def test_a_judge_that_knows_nothing_is_at_chance() -> None:
    draw = np.random.default_rng(0)
    met = draw.random(2000) < 0.7
    found = calibrate(draw.random(2000), met.tolist(), [str(n) for n in range(2000)], **NAMED)
    assert found.balanced_accuracy.low < 0.5 < found.balanced_accuracy.high
    assert found.majority == pytest.approx(0.7, abs=0.03)


def test_one_verdict_only_cannot_be_calibrated() -> None:
    with pytest.raises(ValueError, match="not both met and not met"):
        calibrate([1.0, 2.0, 3.0], [True, True, True], ["a", "b", "c"], **NAMED)


def test_verdicts_on_one_item_are_not_independent() -> None:
    right = np.tile([True, False], 50)
    alone = resampled(right, np.ones(100), [str(n) for n in range(100)])
    together = resampled(np.repeat([True, False], 50), np.ones(100), [str(n // 25) for n in range(100)])
    assert alone.value == together.value == 0.5
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_the_score_interval_is_wilsons() -> None:
    expected = binomtest(7, 10).proportion_ci(method="wilson")
    assert wilson(0.7, 10) == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_it_survives_the_disk_and_other_files_are_refused(tmp_path: Path) -> None:
    items = [str(n) for n in range(40)]
    found = calibrate(np.arange(40.0), [n % 3 > 0 for n in range(40)], items, **NAMED)
    found.save(tmp_path / "c.json")
    assert ThresholdCalibration.load(tmp_path / "c.json") == found
    (tmp_path / "d.json").write_text('{"threshold": 1}')
    with pytest.raises(ValueError, match="not a calibration"):
        ThresholdCalibration.load(tmp_path / "d.json")


def test_the_thresholds_that_are_shipped_hold_for_todays_wording() -> None:
    """If the instructions of a judge change, the values are worthless: measure them again with `benchmarks.local_judges --save`."""
    found = [
        ThresholdCalibration.load(path)
        for path in sorted((Path(calibration.__file__).parent / "calibrations").glob("*.json"))
    ]
    assert [each.model for each in found] == ["smollm2-135m-instruct"]
    assert all(each.wording == wording(USUAL) and shipped(each.digest) == each for each in found)
