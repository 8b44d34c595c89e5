"""The order in which prompts are visited."""

import pytest

from trainer.curriculum import DataOrder, order


def test_every_pass_visits_every_prompt_once_in_an_order_of_its_own() -> None:
    visits = DataOrder(10, seed=3)
    first, second = visits.take(10), visits.take(10)
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second


def test_a_step_may_span_two_passes() -> None:
    order, whole = DataOrder(5, seed=1), DataOrder(5, seed=1)
    assert order.take(3) + order.take(4) + order.take(3) == whole.take(10)


def test_the_seed_decides() -> None:
    assert DataOrder(20, 1).take(20) == DataOrder(20, 1).take(20)
    assert DataOrder(20, 1).take(20) != DataOrder(20, 2).take(20)


def test_without_shuffling_the_order_is_that_of_the_data() -> None:
    assert DataOrder(3, 9, shuffle=False).take(5) == [0, 1, 2, 0, 1]


def test_a_restored_order_draws_what_the_first_would_have_drawn() -> None:
    order = DataOrder(7, seed=5)
    order.take(4)
    again = DataOrder(7, seed=5)
    again.load_state_dict(order.state_dict())
    assert again.take(9) == order.take(9)


def test_a_state_of_other_data_is_refused() -> None:
    with pytest.raises(ValueError, match="made with 7 training prompts, and now there are 8"):
        DataOrder(8, seed=5).load_state_dict(DataOrder(7, seed=5).state_dict())
    with pytest.raises(ValueError, match="no training prompt"):
        DataOrder(0, seed=0)


def test_a_pass_is_shuffled_once_and_not_for_each_draw() -> None:
    order._permutation.cache_clear()
    DataOrder(1_000, seed=1).take(64)
    assert order._permutation.cache_info().misses == 1
