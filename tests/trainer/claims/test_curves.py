"""Measures that are read from curves, compared with values worked out by hand."""

import pytest

from trainer.metrics.claims.curves import curves_of, measure_curves, metric_of, read


def test_each_reading_of_a_curve() -> None:
    curve = {10: 0.9, 0: 0.1, 2: 0.3, 4: 0.2, 6: 0.4, 8: 0.5, 12: 0.7, 14: 0.6, 16: 0.8, 18: 1.0}
    # by step: 0.1 0.3 0.2 0.4 0.5 0.9 0.7 0.6 0.8 1.0; a fifth of ten points is two
    found = {reading: read(curve, reading) for reading in ("first", "last", "change", "mean", "early", "late", "rise")}
    assert found == pytest.approx(
        {"first": 0.1, "last": 1.0, "change": 0.9, "mean": 0.55, "early": 0.2, "late": 0.9, "rise": 0.7}
    )


def test_what_is_not_there_is_missing_and_never_zero() -> None:
    assert read({}, "last") is None and read({5: 0.3}, "change") is None and read({5: 0.3}, "rise") is None
    assert read({5: 0.3}, "last") == 0.3
    assert measure_curves({"a": {0: 1.0, 1: 3.0}}, ["a:change", "b:last"]) == {"a:change": 2.0, "b:last": None}


def test_runs_are_compared_at_equal_rollouts() -> None:
    """One arm takes 64 responses per step, the other 128. When 256 are sampled, the first is at step 4, the second at step 2."""
    score = {0: 0.0, 2: 0.2, 4: 0.4, 6: 0.6}
    plain = {"score": score, "rollout/responses": dict.fromkeys(range(1, 7), 64.0)}
    more = {"score": score, "rollout/responses": dict.fromkeys(range(1, 7), 128.0)}
    assert measure_curves(plain, ["score:by_256"]) == {"score:by_256": 0.4}
    assert measure_curves(more, ["score:by_256"]) == {"score:by_256": 0.2}
    assert measure_curves(more, ["score:by_255"]) == {"score:by_255": 0.0}, "not even two steps"
    assert measure_curves({"score": score}, ["score:by_256"]) == {"score:by_256": None}, "nobody counted"
    assert curves_of(["score:by_256", "score:last", "loss:last"]) == ["score", "rollout/responses", "loss"]


def test_a_stage_is_measured_from_its_first_step_to_its_last() -> None:
    curve = {0: 0.1, 10: 0.9, 20: 0.4, 30: 0.6}
    found = measure_curves({"a": curve}, ["a:at_10", "a:at_19", "a:since_20", "a:from_10_to_20"])
    assert found == pytest.approx({"a:at_10": 0.9, "a:at_19": 0.9, "a:since_20": 0.2, "a:from_10_to_20": -0.5})
    assert measure_curves({"a": {5: 0.3}}, ["a:at_4", "a:since_4", "b:at_4"]) == {
        "a:at_4": None,
        "a:since_4": None,
        "b:at_4": None,
    }


@pytest.mark.parametrize(
    "name", ["accuracy", "eval/rc:", "a:at_", "a:from_3", ":last", "eval/rc:median", "eval/rc:by_0", "eval/rc:by_"]
)
def test_what_names_no_reading_is_no_measure(name: str) -> None:
    with pytest.raises(ValueError, match="expected a metric, a colon and one of first, last"):
        metric_of(name)
