"""Paired Cohen's d."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.effect import cohens_d


def test_by_hand() -> None:
    # differences 1, 2, 3: mean 2, std with ddof 1 is 1
    found = cohens_d([1, 2, 3], [0, 0, 0])
    assert (found.value, found.n) == (pytest.approx(2), 3)


def test_missing_scores_are_counted() -> None:
    found = cohens_d([1, 2, 3, None, 4], [0, 0, 0, 1, None])
    assert (found.value, found.n, found.missing) == (pytest.approx(2), 3, 2)


@pytest.mark.parametrize(
    ("chosen", "rejected", "reason"),
    [
        ([], [], "0 pairs"),
        ([1.0], [0.0], "1 pair with"),
        ([1.0, 2.0], [0.0, 1.0], "every difference is the same"),
        ([0.3, 0.3, 0.3], [0.1, 0.1, 0.1], "every difference is the same"),
        ([1.0, 1.0], [1.0, 1.0], "every difference is the same"),
        ([None, 1.0], [1.0, 1.0], "1 pair with"),
    ],
)
def test_without_a_spread_there_is_no_d(chosen, rejected, reason) -> None:
    found = cohens_d(chosen, rejected)
    assert found.value is None and reason in found.undefined


def test_unpaired_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="2 scores"):
        cohens_d([1, 2], [1])


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=20).filter(lambda d: len(set(d)) > 1), st.floats(1e-6, 1e6))
def test_d_has_no_unit_and_turns_with_the_sides(differences, unit) -> None:
    zeros = [0.0] * len(differences)
    found = cohens_d(differences, zeros).value
    assert cohens_d([d * unit for d in differences], zeros).value == pytest.approx(found, rel=1e-6, abs=1e-9)
    assert cohens_d(zeros, differences).value == pytest.approx(-found, abs=1e-12)
