"""Pairs of samples and their labels: by rewards, by a judge in one order or in both."""

from typing import Any

import pytest

from trainer.config.recipes.iterative_dpo import SampledPairs
from trainer.contracts import PartResult
from trainer.inference.sampling import SampleResult
from trainer.loops.pairs.labelling import by_judge, by_reward, draw, label_metrics
from trainer.rollouts import PromptPlan, Reward, Trajectory


def sample(index: int, total: float | None = None, group: int = 0, text: str = "", **components: float) -> Trajectory:
    plan = PromptPlan(f"row-{group}", group, index, "", (1,), (1,), 0)
    result = SampleResult((2,), (0.0,), text or f"answer {index}", "stop", 0)
    return Trajectory.of(plan, result, Reward(total, components))


def judge_result(given: str | None, swapped: str | None, strength: float | None = None) -> PartResult:
    return PartResult(name="j", kind="judge", shown={"places": [given, swapped], "strength": strength})


def drawn(rewards: list[float | None], choose: str) -> list[tuple[int, int]]:
    samples = [sample(place, reward) for place, reward in enumerate(rewards)]
    return [(first.plan.index, second.plan.index) for first, second in draw(samples, choose)]


def test_which_samples_become_pairs() -> None:
    rewards = [0.2, 0.9, 0.1, 0.5, 0.3]
    assert drawn(rewards, "neighbours") == [(0, 1), (2, 3)]
    assert drawn(rewards[:3], "all") == [(0, 1), (0, 2), (1, 2)]
    assert drawn(rewards, "extremes") == [(1, 2)]
    assert drawn([None, 0.4, None, 0.6], "extremes") == [(1, 3)]
    two = [sample(0, group=0), sample(0, group=1), sample(1, group=0), sample(1, group=1)]
    assert [(a.plan.group, b.plan.group) for a, b in draw(two, "neighbours")] == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("first", "second", "margin", "outcome", "first_won"),
    [
        (0.7, 0.2, 0.0, "kept", True),
        (0.2, 0.7, 0.5, "kept", False),
        (0.7, 0.3, 0.5, "tie", False),
        (0.5, 0.5, 0.0, "tie", False),
        (None, 0.5, 0.0, "missing", False),
    ],
)
def test_a_reward_must_lead_by_the_margin(
    first: float | None, second: float | None, margin: float, outcome: str, first_won: bool
) -> None:
    label = by_reward((sample(0, first), sample(1, second)), margin)
    assert (label.outcome, label.first_won) == (outcome, first_won)
    if outcome == "kept":
        assert label.lead == pytest.approx(0.5) and label.better.plan.index == (0 if first_won else 1)


@pytest.mark.parametrize(
    ("given", "swapped", "both", "one"),
    [
        ("first", "second", "first", "first"),
        ("second", "first", "second", "second"),
        ("first", "first", "inconsistent", "first"),
        ("second", "second", "inconsistent", "second"),
        ("tie", "tie", "tie", "tie"),
        ("first", "tie", "inconsistent", "first"),
        ("tie", "first", "inconsistent", "tie"),
        ("first", None, "missing", "first"),
        (None, "first", "missing", "missing"),
    ],
)
def test_what_a_judge_said_in_both_orders_becomes_a_label(
    given: str | None, swapped: str | None, both: str, one: str
) -> None:
    pair = (sample(0), sample(1))
    for labels, expected in (("both_orders", both), ("one_order", one)):
        label = by_judge(pair, judge_result(given, swapped), labels)  # type: ignore[arg-type]
        won = {"first": True, "second": False}.get(expected)
        assert label.outcome == ("kept" if won is not None else expected)
        assert won is None or label.first_won == won


def test_equal_answers_and_unasked_pairs_have_no_label() -> None:
    twins = (sample(0, 1.0, text="same"), sample(1, 0.0, text="same"))
    assert by_reward(twins, 0.0).outcome == by_judge(twins, None, "both_orders").outcome == "equal"
    assert by_judge((sample(0), sample(1)), None, "both_orders").outcome == "missing"


def test_a_rounds_labels_in_numbers() -> None:
    truth: list[dict[str, Any]] = [{"truth": 1.0}, {"truth": 0.0}]
    pair = (sample(0, **truth[0]), sample(1, **truth[1]))
    verdicts = [
        judge_result("first", "second", 1.0),
        judge_result("second", "first", -2.0),
        judge_result("first", "first", 0.0),
        judge_result("tie", "tie", 0.0),
    ]
    labels = [by_judge(pair, each, "both_orders") for each in verdicts]
    values = label_metrics(labels, SampledPairs())
    assert (values["label/pairs"], values["label/kept"]) == (4, 0.5)
    assert (values["label/ties"], values["label/inconsistent"], values["label/missing"]) == (1, 1, 0)
    assert values["label/first_share"] == 4 / 6, "of six verdicts for a place, those for the first"
    assert values["label/margin"] == 1.5
    assert (values["label/agreement/truth"], values["label/agreement_pairs/truth"]) == (0.5, 2)
    alone = label_metrics([by_reward((sample(0, 1.0), sample(1, 0.0)), 0.0)], SampledPairs())
    assert "label/first_share" not in alone and "label/inconsistent" not in alone
