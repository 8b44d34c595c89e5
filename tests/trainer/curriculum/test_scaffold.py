"""RuscaRL's scaffold with hand-worked numbers."""

import itertools
import math
from fractions import Fraction

import pytest

from trainer.config.sections.scaffold import Scaffold
from trainer.contracts import Criterion, Rubric
from trainer.curriculum import group_factor, scaffold_for, scaffold_text, shown_count, step_factor


def criterion(number: int, points: float = 1.0) -> Criterion:
    return Criterion(id=f"c{number}", text=f"Point {number}", points=points)


RUBRIC = Rubric(criteria=tuple(criterion(number, -2.0 if number == 3 else 1.0) for number in range(5)))


def test_the_linear_group_factor_falls_from_one_to_zero() -> None:
    config = Scaffold()
    assert [group_factor(config, i, 5) for i in range(1, 6)] == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert group_factor(config, 1, 1) == 1.0


def test_the_binary_group_factor_shows_everything_to_the_first_n() -> None:
    config = Scaffold(group="binary", binary_n=2)
    assert [group_factor(config, i, 4) for i in range(1, 5)] == [1.0, 1.0, 0.0, 0.0]


def test_without_a_group_factor_all_see_the_same() -> None:
    assert [group_factor(Scaffold(group="none"), i, 3) for i in range(1, 4)] == [1.0, 1.0, 1.0]


def test_the_sigmoid_is_one_half_at_t0() -> None:
    config = Scaffold(alpha=125.0, t0=0.2)
    assert step_factor(config, 21, 101) == 0.5
    # t = 0.21: 1 / (1 + exp(1.25))
    assert math.isclose(step_factor(config, 22, 101), 0.22270013882530884)
    assert step_factor(config, 1, 101) > 0.999999
    assert step_factor(config, 101, 101) < 1e-40


def test_other_schedules() -> None:
    halfway = (51, 101)
    assert step_factor(Scaffold(step="linear"), *halfway) == 0.5
    assert step_factor(Scaffold(step="power", power=3.0), *halfway) == 0.125
    assert step_factor(Scaffold(step="constant"), *halfway) == 1.0


def test_a_run_of_one_step_is_at_its_start() -> None:
    assert step_factor(Scaffold(step="linear"), 1, 1) == 1.0


@pytest.mark.parametrize(
    ("share", "criteria", "shown"), [(0.5, 5, 3), (0.5, 3, 2), (0.1, 5, 1), (0.09, 5, 0), (1, 7, 7)]
)
def test_halves_are_rounded_away_from_zero(share: float, criteria: int, shown: int) -> None:
    assert shown_count(share, criteria) == shown


def test_halves_are_rounded_up_also_if_the_share_is_no_exact_number() -> None:
    """The 8th of 23 responses sees 15/22 of the rubric; of 11 criteria that is 7.5."""
    config = Scaffold(group="linear", step="constant")
    assert shown_count(group_factor(config, 8, 23), 11) == 8
    for size, criteria in itertools.product(range(2, 65), range(1, 31)):
        for i in range(1, size + 1):
            exact = Fraction(size - i, size - 1) * criteria + Fraction(1, 2)
            assert shown_count(group_factor(config, i, size), criteria) == math.floor(exact)


def test_the_choice_follows_from_the_seed_and_keeps_the_order() -> None:
    texts = {scaffold_for(RUBRIC, 0.6, 0, "step", i).text for i in range(20)}
    assert len(texts) > 1
    one = scaffold_for(RUBRIC, 0.6, 0, "step", 4)
    assert one == scaffold_for(RUBRIC, 0.6, 0, "step", 4)
    assert one.shown == 3
    numbers = [line[-1] for line in one.text.splitlines() if line.startswith("- ") and line != "- Point 3"]
    assert numbers == sorted(numbers)


def test_points_to_include_and_to_avoid_stand_apart() -> None:
    lines = scaffold_text([criterion(1), criterion(2, -1.0), criterion(3)]).splitlines()
    include, avoid = lines.index("A good answer does this:"), lines.index("A good answer does none of this:")
    assert lines[include + 1 : avoid] == ["- Point 1", "- Point 3"]
    assert lines[avoid + 1] == "- Point 2"
    assert "do not mention" in lines[-1]


def test_a_list_without_entries_has_no_heading() -> None:
    assert "none of this" not in scaffold_text([criterion(1)])
    assert "does this" not in scaffold_text([criterion(1, -1.0)])
    assert scaffold_text([]) == ""
    assert scaffold_for(RUBRIC, 0.0, 0).text == ""
