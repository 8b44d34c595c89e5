"""How many responses each prompt of a step gets."""

import pytest

from trainer.config.sections.budget import Budget
from trainer.curriculum import GroupSizes, PassCounts
from trainer.curriculum.budget import allocate, signal_value, variance_value


def rates(**known: list[bool]) -> PassCounts:
    found = PassCounts(0.5)
    found.learned(known)
    return found


def test_without_a_budget_all_are_alike() -> None:
    assert GroupSizes(4, None, rates()).of(["a", "b", "c"]) == [4, 4, 4]


def test_what_is_sometimes_solved_gets_what_the_others_do_not_need() -> None:
    """a and c are decided, so they get the minimum. b gets the rest, up to its bound."""
    known = rates(a=[True] * 4, b=[True, False, True, False], c=[False] * 4)
    assert GroupSizes(4, Budget(low=2, high=8), known).of(["a", "b", "c"]) == [2, 8, 2]
    assert GroupSizes(4, Budget(low=2, high=6), known).of(["a", "b", "c"]) == [4, 6, 2]


def test_responses_from_before_make_a_prompt_worth_less() -> None:
    """Both have rate 1/2. a has 8 responses: its third brings 1/4 / (11 x 12). b has 2: its third brings 1/4 / (5 x 6)."""
    known = rates(a=[True, False] * 4, b=[True, False])
    assert GroupSizes(4, Budget(low=2, high=8), known).of(["a", "b"]) == [2, 6]
    assert GroupSizes(4, Budget(low=2, high=8, value="signal"), known).of(["a", "b"]) == [4, 4]


def test_a_prompt_not_met_yet_has_the_rate_that_is_assumed() -> None:
    known = rates(a=[True] * 4)
    assert GroupSizes(4, Budget(low=2, high=8, unknown=0.5), known).of(["a", "new"]) == [2, 6]
    assert GroupSizes(4, Budget(low=2, high=8, unknown=1.0), known).of(["a", "new"]) == [6, 2]


def test_where_no_prompt_is_worth_anything_it_is_said_what_happens_instead() -> None:
    sizes = GroupSizes(4, Budget(low=2, high=8), rates(a=[True] * 4, b=[True] * 2, c=[False] * 4, d=[True, False]))
    assert sizes.of(["a", "b", "c"]) == [8, 2, 2]
    assert "2 of the 3 prompts of a step were always solved" in sizes.aimless
    sizes.of(["a", "d"])
    assert not sizes.aimless
    assert not GroupSizes(4, None, rates()).aimless


def test_a_part_of_a_step_has_its_own_total() -> None:
    known = rates(a=[True, False], b=[True] * 2)
    assert GroupSizes(4, Budget(low=2, high=8), known).of(["a", "b"], 5) == [3, 2]
    with pytest.raises(ValueError, match="total"):
        GroupSizes(4, Budget(low=2, high=8), known).of(["a", "b"], 3)


def test_values_by_hand() -> None:
    """p = 1/4. Two responses are alike with probability 1/16 + 9/16. The third is different with probability 1/16 x 3/4 + 9/16 x 1/4 =
    3/16.
    """
    assert signal_value(0.25, 2) == pytest.approx(3 / 16)
    assert signal_value(0.25, 0) == signal_value(0.25, 1) == pytest.approx(2 * 3 / 16)
    assert signal_value(0.25, 3) == signal_value(0.75, 3) and signal_value(1.0, 3) == 0.0
    assert variance_value(0.25, 99) == pytest.approx(3 / 16)
    assert allocate([0.5, 0.25], [0, 0], 12, 2, 8, variance_value) == [8, 4], "whatever n: one prompt has all it may"
