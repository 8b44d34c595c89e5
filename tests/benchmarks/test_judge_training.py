"""Both sides of the measurement of judge training get the same questions, and the reward is that of the recipe."""

from types import SimpleNamespace

from benchmarks.judge_training import _config, questions, reason_lists, reward

OPTIONS = SimpleNamespace(steps=1, questions=2, group=2, tokens=8)


def test_the_peer_is_asked_the_questions_of_the_recipe():
    found = questions(_config(OPTIONS))  # type: ignore[arg-type]
    assert len(found) > 10 and all(posed.facts["reasons"] and posed.facts["label"] in (-1, 1) for posed in found)


def test_the_peer_s_reward_is_ap_times_outcome():
    human = ["Names the minutes.", "Says when to start counting."]
    texts = ["- Names the minutes.\nVerdict: A better", "- Names the minutes.\nVerdict: B better", "Hm."]
    assert reward(texts, [-1] * 3, [human] * 3) == [0.5, 0.0, 0.0]


def test_lists_of_reasons_are_as_many_as_asked_for_and_drawn_by_the_seed():
    lists = reason_lists(21, 4)
    assert len(lists) == 21 and lists == reason_lists(21, 4) != reason_lists(21, 4, seed=1)
    assert all(3 <= len(human) <= 7 and 1 <= len(said) <= 8 for human, said in lists)
    assert lists[0][0] is lists[3][0], "the reasons of a person come again with every judgement of the group"
