"""Condensed points compared with plain loops. No extreme is lost, the earlier step wins a tie, and little is read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.experiments.metrics import levels


def few(least, most):
    """Lists of a few values, so that there are ties. They are drawn as bytes, which takes a tenth of the time of drawing them one by one."""
    return st.binary(min_size=least, max_size=most).map(lambda drawn: [float(each % 7) for each in drawn])


def points_of(values, spacing=1):
    points = np.zeros(len(values), levels.POINT)
    points["step"], points["value"] = np.arange(len(values)) * spacing, values
    points["at"] = 10 * points["step"]
    return points


def extremes(points, size):
    """(step, value) of the lowest and the highest of every `size` neighbours, found by plain loops."""
    held = list(zip(points["step"].tolist(), points["value"].tolist(), strict=True))
    found = set()
    for start in range(0, len(held), size):
        part = held[start : start + size]
        found |= {min(part, key=lambda each: (each[1], each[0])), min(part, key=lambda each: (-each[1], each[0]))}
    return found


def pairs(points):
    return set(zip(points["step"].tolist(), points["value"].tolist(), strict=True))


@given(few(levels.ROW, 3 * levels.ROW), st.integers(1, 1000))
def test_rows_keep_the_extremes_of_every_unit(values, spacing):
    points = points_of(values, spacing)
    rows = levels.rows(points)
    whole = len(points) // levels.ROW * levels.ROW
    assert len(rows) == len(points) // levels.ROW
    ends = points[[place for i in range(len(rows)) for place in (i * levels.ROW, (i + 1) * levels.ROW - 1)]]
    opened = levels.opened(b"".join(rows))
    assert pairs(opened) == extremes(points[:whole], levels.UNIT) | pairs(ends)
    assert [levels.last_step(row) for row in rows] == ends["step"][1::2].tolist()
    assert (opened["at"] == 10 * opened["step"]).all() and (np.diff(opened["step"]) > 0).all()


@given(st.randoms(use_true_random=False))
def test_a_row_of_the_next_level_is_that_of_its_points(random):
    points = points_of([float(random.randrange(9)) for _ in range(levels.FANOUT * levels.ROW)])
    row = levels.merged(levels.rows(points))
    assert pairs(levels.opened(row)) == extremes(points, levels.FANOUT * levels.UNIT) | pairs(points[[0, -1]])
    assert len(row) == len(levels.rows(points)[0]) < 700


@given(st.randoms(use_true_random=False))
def test_means_are_those_of_the_points_of_each_unit(random):
    points = points_of([float(random.randrange(9)) for _ in range(levels.FANOUT * levels.ROW + 5)], 3)
    rows = levels.whole_rows(points)
    assert [row.points for row in rows] == levels.rows(points)
    for size, means in ((1, [row.means for row in rows]), (levels.FANOUT, [levels.merged_rows(rows).means])):
        each = points[: levels.FANOUT * levels.ROW].reshape(-1, size * levels.UNIT)
        units = levels.opened_means(b"".join(means))
        assert units["value"].tolist() == [part["value"].mean() for part in each]
        assert units["at"].tolist() == [part["at"].mean() for part in each]
        assert (units["first"] == each["step"][:, 0]).all() and (units["last"] == each["step"][:, -1]).all()


def test_means_of_large_values_are_numbers():
    points = points_of([1.5e308] * levels.ROW)
    (means,) = levels.means(points)
    assert (levels.opened_means(means)["value"] == 1.5e308).all()
    assert (levels.opened_means(levels.merged_means([means] * 4))["value"] == 1.5e308).all()


@given(few(1, 300), st.integers(1, 40))
def test_thinning_keeps_the_extremes_of_every_bucket_of_steps(values, buckets):
    points = points_of(values, 3)
    span = int(points["step"][-1]) + 1
    place = points["step"].astype(int) * buckets // span
    expected = pairs(points[[0, -1]])
    for bucket in set(place.tolist()):
        expected |= extremes(points[place == bucket], len(points))
    assert pairs(levels.thinned(points, buckets)) == expected


@pytest.mark.parametrize("count", [0, 1, levels.ROW - 1])
def test_what_fills_no_row_waits(count):
    assert levels.rows(points_of([1.0] * count)) == []


def test_steps_as_high_as_they_may_be_stay_apart():
    points = points_of([1.0] * 10)
    points["step"] += 2**31 - 11
    assert levels.thinned(points, 4)["step"][-1] == 2**31 - 2
