"""Bradley-Terry by hand, compared with the equations that it must satisfy, and cases without a solution."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.metrics.ranking import Comparison, StrengthRanking, bradley_terry


def games(*rows: tuple[str, str, int, int]) -> list[Comparison]:
    """(first, second, wins of the first, wins of the second)."""
    return [Comparison(a, b, side) for a, b, x, y in rows for side, n in ((-1, x), (1, y)) for _ in range(n)]


def strengths(found: StrengthRanking) -> dict[str, float]:
    return {each.item: each.strength.value for each in found.items}


def test_two_items_by_hand() -> None:
    found = bradley_terry(games(("a", "b", 30, 10)))
    assert [each.item for each in found.items] == ["a", "b"]
    a, b = (each.strength for each in found.items)
    assert a.value - b.value == pytest.approx(math.log(3))
    assert a.value + b.value == pytest.approx(0)
    assert 0 < a.low < a.value < a.high and a.n == 40
    assert found.items[0].win_rate.value == 0.75
    assert found.problem == ""


def test_three_items_recover_the_odds_they_were_made_from() -> None:
    # strengths 4 : 2 : 1 give odds 2, 4 and 2
    found = bradley_terry(games(("a", "b", 20, 10), ("b", "c", 20, 10), ("a", "c", 24, 6)))
    assert np.exp([strengths(found)[x] - strengths(found)["c"] for x in "ab"]) == pytest.approx([4, 2])


def test_a_tie_is_half_a_win_for_each() -> None:
    ties = bradley_terry([Comparison("a", "b", 0)] * 2 + games(("a", "b", 2, 0)))
    assert strengths(ties) == pytest.approx(strengths(bradley_terry(games(("a", "b", 3, 1)))))
    assert (ties.items[0].wins, ties.items[0].ties, ties.items[0].losses) == (2, 2, 0)


def test_which_side_an_item_was_shown_on_does_not_matter() -> None:
    one = games(("a", "b", 6, 3), ("b", "c", 4, 4), ("c", "a", 2, 5))
    turned = [Comparison(c.second, c.first, -(c.outcome or 0)) for c in one]
    assert strengths(bradley_terry(turned)) == pytest.approx(strengths(bradley_terry(one)))


def test_missing_outcomes_are_counted_and_leave() -> None:
    found = bradley_terry([*games(("a", "b", 2, 1)), Comparison("a", "c", None)])
    assert (found.comparisons, found.missing) == (3, 1)
    assert set(strengths(found)) == {"a", "b"}


def test_nothing_compared_is_an_empty_ranking() -> None:
    assert bradley_terry([]) == StrengthRanking((), 0, 0, "")
    with pytest.raises(ValueError, match="'a' is compared with itself"):
        bradley_terry([Comparison("a", "a", 1)])


def test_items_never_compared_are_said_to_be_apart() -> None:
    found = bradley_terry(games(("a", "b", 2, 1), ("c", "d", 1, 2)))
    assert "2 groups" in found.problem and "not compared with each other" in found.problem
    by_item = {each.item: each for each in found.items}
    assert by_item["a"].group != by_item["c"].group
    assert by_item["d"].strength.value - by_item["c"].strength.value == pytest.approx(math.log(2))


def test_who_never_lost_has_no_finite_strength_but_a_place() -> None:
    found = bradley_terry(games(("best", "a", 5, 0), ("best", "b", 5, 0), ("a", "b", 3, 1), ("b", "last", 2, 0)))
    assert [each.item for each in found.items] == ["best", "a", "b", "last"]
    assert [each.group for each in found.items] == [0, 1, 1, 2]
    assert found.items[0].strength.undefined.startswith("alone") and found.items[0].strength.n == 10
    assert found.items[0].win_rate.value == 1
    assert "never beaten by those further down" in found.problem


def test_comparisons_on_one_prompt_are_drawn_together() -> None:
    rows = games(("a", "b", 30, 10))
    alone = bradley_terry(rows).items[0].strength
    prompts = [i // 10 for i in range(40)]
    together = bradley_terry(rows, clusters=prompts).items[0].strength
    assert together.value == pytest.approx(alone.value)
    assert (together.low, together.high) != (alone.low, alone.high)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.sampled_from([-1, 0, 1])), max_size=25))
def test_each_item_wins_as_often_as_its_strength_expects(rows) -> None:
    """The likelihood equations: within a group, sum over opponents of n_ij / (1 + exp(s_j - s_i)) = wins."""
    comparisons = [Comparison(a, b, side) for a, b, side in rows if a != b]
    found = bradley_terry(comparisons)
    group = {each.item: each.group for each in found.items}
    strength = strengths(found)
    for item, own in strength.items():
        if own is None:
            continue
        inside = [c for c in comparisons if item in (c.first, c.second) and group[c.first] == group[c.second]]
        won = sum(0.5 if c.outcome == 0 else float((c.outcome < 0) == (c.first == item)) for c in inside)
        others = [c.second if c.first == item else c.first for c in inside]
        assert sum(1 / (1 + math.exp(strength[o] - own)) for o in others) == pytest.approx(won, abs=1e-4)
