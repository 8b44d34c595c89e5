"""Orders of prompts by hand: pools and mixtures. A saved order continues as if it had not been interrupted."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.config.sections.order import Order, Pool
from trainer.curriculum import DataOrder, KnownPrompt, PassCounts, PromptOrder
from trainer.curriculum.prompt_order import replicas

RATES = [0.0, 0.1, 0.5, 0.9, 1.0, None]
KNOWN = [
    KnownPrompt(f"row-{n}", rate, frozenset({"odd"} if n % 2 else {"even", "all"})) for n, rate in enumerate(RATES)
]


def order(mix: Order | None = None, rates: PassCounts | None = None, shuffle: bool = False) -> PromptOrder:
    return PromptOrder(KNOWN, 3, shuffle, mix, rates)


def test_without_a_mixture_the_order_is_that_of_the_data() -> None:
    whole, plain = order(shuffle=True), DataOrder(6, 3)
    assert whole.take(20) == plain.take(20)
    assert whole.state_dict() == plain.state_dict()
    assert [whole.at(place) for place in range(13)] == [plain.at(place) for place in range(13)]


@pytest.mark.parametrize(
    ("pool", "found"),
    [
        (Pool(), [0, 1, 2, 3, 4, 5]),
        (Pool(above=0.1, up_to=0.9), [2, 3]),
        (Pool(above=0.0), [1, 2, 3, 4]),
        (Pool(up_to=0.0), [0]),
        (Pool(tags=["odd"]), [1, 3, 5]),
        (Pool(tags=["odd", "all"]), [0, 1, 2, 3, 4, 5]),
        (Pool(above=0.0, tags=["odd"]), [1, 3]),
    ],
)
def test_a_pool_holds_what_is_in_its_range_and_has_one_of_its_tags(pool: Pool, found: list[int]) -> None:
    narrowed = order()
    narrowed.narrow(1, pool)
    assert sorted(narrowed.take(len(found))) == found == sorted(narrowed.take(len(found)))


def test_a_pool_without_prompts_is_refused_in_words() -> None:
    with pytest.raises(
        ValueError, match="none of the 6 training prompts has a pass rate above 0.95 .* and has the tag odd"
    ):
        order().narrow(1, Pool(above=0.95, up_to=1.0, tags=["odd"]))


def test_from_easy_to_hard_and_again_with_unknown_ones_last() -> None:
    easy = order(Order(data=0.0, easy_first=1.0))
    assert easy.take(4) == [4, 3, 2, 1]
    assert easy.take(4) == [0, 5, 4, 3]


def test_the_least_certain_come_first_by_what_the_run_has_seen() -> None:
    """Before the run: 0.5 and the unknown prompt come first, then 0.1 and 0.9. After 8 responses to the first, others are less certain."""
    rates = PassCounts(0.5)
    unsure = order(Order(data=0.0, uncertain=1.0), rates)
    assert unsure.take(4) == [2, 5, 1, 3]
    rates.learned({"row-2": [True, False] * 4, "row-0": [True, False]})
    assert unsure.take(4) == [5, 1, 3, 0]


def test_places_are_dealt_out_by_shares_and_a_prompt_comes_once_a_step() -> None:
    mixed = order(Order(data=2.0, easy_first=1.0, uncertain=1.0), PassCounts(0.5))
    taken = [mixed.take(4) for _ in range(25)]
    assert all(len(set(step)) == 4 for step in taken)
    assert mixed.state_dict()["given"] == {"data": 50, "easy_first": 25, "uncertain": 25}


def test_a_step_that_is_larger_than_its_pool_repeats_prompts() -> None:
    small = order(Order(data=1.0, easy_first=1.0))
    small.narrow(1, Pool(above=0.1, up_to=0.9))
    assert Counter(small.take(4)) == {2: 2, 3: 2}


EASY, PLAIN = Order(data=0.0, easy_first=1.0), Order()


def test_a_phase_names_another_order_and_the_data_goes_on_where_it_was() -> None:
    changing = order()
    assert changing.take(2) == [0, 1]
    changing.blend(1, EASY)
    assert changing.take(4) == [4, 3, 2, 1]
    changing.blend(2, PLAIN)
    assert (changing.take(2), changing.mixed_by) == ([2, 3], (2, PLAIN))
    changing.blend(3, EASY)
    assert changing.take(2) == [4, 3], "from the easiest again"
    assert changing.passes == pytest.approx(10 / 6)
    changing.blend(0, None)
    assert (changing.take(2), changing.state_dict()) == ([4, 5], {"position": 6, "count": 6})


def test_an_order_stays_when_a_phase_narrows_the_pool() -> None:
    both = order()
    both.blend(1, EASY)
    both.take(1)
    both.narrow(2, Pool(tags=["odd"]))
    assert (both.take(3), both.passes) == ([3, 1, 5], 1.0)


@pytest.mark.parametrize(
    ("mix", "words"),
    [
        (EASY, "from easy to hard"),
        (Order(data=0.0, uncertain=2.0), "the most uncertain first"),
        (Order(data=3.0, easy_first=1.0), "order: 75% by data, 25% from easy to hard"),
    ],
)
def test_a_mixture_in_a_few_words(mix: Order, words: str) -> None:
    assert mix.short == words


@given(
    st.lists(st.integers(1, 7), max_size=8),
    st.lists(st.integers(1, 7), min_size=1, max_size=8),
    st.sampled_from([None, Order(), EASY, Order(data=1.0, easy_first=0.5)]),
    st.sampled_from([None, EASY]),
    st.booleans(),
)
def test_a_saved_order_that_a_phase_has_named_goes_on_as_if_nothing_had_happened(
    before: list[int], after: list[int], named: Order | None, configured: Order | None, back: bool
) -> None:
    first, second = order(configured, shuffle=True), order(configured, shuffle=True)
    for wanted in before:
        first.take(wanted)
    first.blend(1, named) if named else None
    first.take(3)
    first.blend(0, None) if back else None
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert [first.take(wanted) for wanted in after] == [second.take(wanted) for wanted in after]
    assert (first.state_dict(), first.passes) == (second.state_dict(), second.passes)


@given(st.lists(st.integers(1, 7), max_size=8), st.lists(st.integers(1, 7), min_size=1, max_size=8), st.booleans())
def test_a_saved_order_goes_on_as_if_nothing_had_happened(before: list[int], after: list[int], narrow: bool) -> None:
    mix = Order(data=1.0, easy_first=0.5, uncertain=0.7)
    first, second = order(mix, PassCounts(0.5), shuffle=True), order(mix, PassCounts(0.5), shuffle=True)
    for wanted in before:
        first.take(wanted)
    if narrow:
        first.narrow(2, Pool(above=0.0))
        first.take(1)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert [first.take(wanted) for wanted in after] == [second.take(wanted) for wanted in after]
    assert first.state_dict() == second.state_dict()


def test_another_data_set_is_refused() -> None:
    with pytest.raises(ValueError, match="with 6 training prompts, and now there are 5"):
        PromptOrder(KNOWN[:5], 3, True).load_state_dict(order().state_dict())


def test_what_the_data_lacks_is_said_with_its_number() -> None:
    middle = Pool(above=0.2, up_to=0.8)
    assert middle.unfit({}) == "no training prompt has a pass rate yet (`meta.pass_rate`)"
    assert middle.unfit({"rated": 9, "rated_solved": 9}) == "all 9 training prompts with a pass rate were always solved"
    assert middle.unfit({"rated": 9, "rated_unsolved": 9}).startswith("none of the 9 training prompts")
    assert middle.unfit({"rated": 9, "rated_unsolved": 8}) == ""
    assert Pool(above=0.2).unfit({"rated": 9, "rated_solved": 9}) == ""
    assert Pool(tags=["odd"]).unfit({}) == ""
    (problem,) = Order(easy_first=1.0).data_problems({"rated": 3, "rated_solved": 3})
    assert problem.path == "data.order.easy_first"
    assert not list(Order(uncertain=1.0).data_problems({}))


def test_prompts_have_more_groups_in_a_pass_the_lower_their_pass_rate() -> None:
    assert [replicas(rate, 5) for rate in (1.0, 0.9, 0.5, 0.1, 0.0, None)] == [1, 1, 3, 5, 5, 1]
    assert {replicas(rate, 1) for rate in RATES} == {1}
    assert replicas(0.9, 6) == 2  # 0.1 * 5 = 0.5, which is rounded up
    often = PromptOrder(KNOWN, 3, True, most=5)
    whole = {0: 5, 1: 5, 2: 3, 3: 1, 4: 1, 5: 1}
    assert Counter(often.take(16)) == Counter(often.take(16)) == whole
    assert often.size == 6


def test_replicas_go_on_from_a_checkpoint() -> None:
    first, second = PromptOrder(KNOWN, 3, True, most=5), PromptOrder(KNOWN, 3, True, most=5)
    first.take(21)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert first.take(30) == second.take(30)
