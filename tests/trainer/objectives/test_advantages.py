"""Advantages of rewards that are small enough to work by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.objectives import ObjectiveError, advantages

NAN = float("nan")


def tensor(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_group_std_divides_by_the_population_deviation() -> None:
    # mean 2, squared deviations 1 1 1 1 -> population std 1
    assert advantages.group_std(tensor([1, 3, 3, 1])).tolist() == [-1, 1, 1, -1]


def test_group_std_as_in_trl() -> None:
    # mean 2, sample variance 4/3
    found = advantages.group_std(tensor([1, 3, 3, 1]), ddof=1, eps=1e-4)
    assert found[1].item() == pytest.approx(1 / (math.sqrt(4 / 3) + 1e-4))


def test_groups_are_told_apart_wherever_their_responses_stand() -> None:
    # group 7: rewards 0, 4 -> mean 2; group 3: rewards 1, 2 -> mean 1.5
    found = advantages.centred(tensor([0, 1, 4, 2]), torch.tensor([7, 3, 7, 3]))
    assert found.tolist() == [-2, -0.5, 2, 0.5]


@pytest.mark.parametrize("rewards", [[0.1 + 0.2, 0.3, 0.3], [0.7] * 4, [5.0]])
def test_rewards_equal_up_to_rounding_give_zero(rewards: list[float]) -> None:
    assert advantages.group_std(tensor(rewards)).tolist() == [0] * len(rewards)
    assert advantages.group_std(torch.tensor(rewards, dtype=torch.float32)).tolist() == [0] * len(rewards)


def test_small_true_differences_are_not_rounding() -> None:
    assert advantages.group_std(tensor([0.5, 0.500001])).tolist() == pytest.approx([-1, 1])


def test_leave_one_out_compares_with_the_others() -> None:
    # 1 - (2+6)/2 = -3;  2 - (1+6)/2 = -1.5;  6 - (1+2)/2 = 4.5
    assert advantages.leave_one_out(tensor([1, 2, 6])).tolist() == pytest.approx([-3, -1.5, 4.5])


def test_leave_one_out_refuses_a_group_of_one() -> None:
    with pytest.raises(ObjectiveError, match="response 2 is alone"):
        advantages.leave_one_out(tensor([1, 2, 6]), torch.tensor([0, 0, 1]))


def test_remax_compares_with_the_greedy_response() -> None:
    assert advantages.remax(tensor([1, 0]), tensor([0.25, 0.25])).tolist() == [0.75, -0.25]


def test_batch_centres_by_group_and_scales_by_the_batch() -> None:
    # group means 1 and 5; batch 0 2 4 6: mean 3, population variance (9+1+1+9)/4 = 5
    found = advantages.batch(tensor([0, 2, 4, 6]), torch.tensor([0, 0, 1, 1]))
    assert found.tolist() == pytest.approx([x / math.sqrt(5) for x in (-1, 1, -1, 1)])


@pytest.mark.parametrize("name", ["group_std", "centred", "leave_one_out", "batch"])
def test_a_missing_reward_excludes_the_response_and_shifts_nobody(name: str) -> None:
    with_gap = advantages.estimate(name, tensor([1, NAN, 3, 5]))
    assert math.isnan(with_gap[1])
    assert with_gap[[0, 2, 3]].tolist() == pytest.approx(advantages.estimate(name, tensor([1, 3, 5])).tolist())


def test_a_group_without_any_reward_stays_missing() -> None:
    assert advantages.group_std(tensor([NAN, NAN])).isnan().all()
    assert advantages.optimal_advantage(tensor([NAN, NAN])).isnan().all()


def test_an_infinite_reward_is_refused_rather_than_turned_into_missing() -> None:
    with pytest.raises(ObjectiveError, match="rewards: response 1 has an infinite reward"):
        advantages.group_std(tensor([0, math.inf]))


def test_the_soft_value_by_hand() -> None:
    # log((e^0 + e^1) / 2) = 0.6201145069582775
    assert advantages.soft_value(tensor([0, 1]), 1.0).item() == pytest.approx(0.6201145069582775, abs=1e-15)


def test_the_soft_value_tends_to_the_maximum_and_to_the_mean() -> None:
    rewards = tensor([0.25, 0.5, 1.0])
    assert advantages.soft_value(rewards, 0.0).item() == 1.0
    assert advantages.soft_value(rewards, 1e-300).item() == 1.0
    assert advantages.soft_value(rewards, 1e-4).item() == pytest.approx(1.0 - 1e-4 * math.log(3))
    # second order: mean + variance / (2 beta1)
    assert advantages.soft_value(rewards, 1e9).item() == pytest.approx(1.75 / 3, abs=1e-10)
    assert advantages.soft_value(rewards, 1e300).item() == pytest.approx(1.75 / 3, abs=1e-15)


groups_of_rewards = st.lists(st.integers(-8, 8).map(lambda n: n / 4), min_size=2, max_size=8)


@settings(deadline=None)
@given(groups_of_rewards.flatmap(lambda r: st.tuples(st.just(r), st.permutations(range(len(r))))))
@pytest.mark.parametrize("name", ["group_std", "centred", "leave_one_out", "batch"])
def test_permuting_a_group_permutes_its_advantages(name: str, drawn: tuple[list[float], list[int]]) -> None:
    r, order = tensor(drawn[0]), torch.tensor(drawn[1])
    torch.testing.assert_close(advantages.estimate(name, r[order]), advantages.estimate(name, r)[order])


@settings(deadline=None)
@given(groups_of_rewards, st.floats(-5, 5), st.floats(0.1, 5))
def test_group_std_ignores_shift_and_scale(rewards: list[float], shift: float, scale: float) -> None:
    r = tensor(rewards)
    torch.testing.assert_close(advantages.group_std(r * scale + shift), advantages.group_std(r), rtol=1e-6, atol=1e-6)


@settings(deadline=None)
@given(groups_of_rewards)
@pytest.mark.parametrize("name", ["group_std", "centred", "leave_one_out", "batch"])
def test_advantages_of_a_group_sum_to_zero(name: str, rewards: list[float]) -> None:
    assert advantages.estimate(name, tensor(rewards)).sum().item() == pytest.approx(0, abs=1e-9)
