"""The planted judge is right except for its bias, which affects the same pairs in both orders. The results of a run are read from its
metrics.
"""

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.planted_bias import access, draw, examples, measures
from trainer.judges.combine import pair_verdicts
from trainer.judges.inputs import JudgeInput
from trainer.rewards.parts import RewardAnswer


def judge_answers(biased: float, first: str, second: str) -> list[RewardAnswer]:
    (judge,) = (each.open(None) for each in access(biased).judges.values())
    example = examples()[0]
    criteria = example.rubric.criteria if example.rubric else ()
    given = JudgeInput("row", example.prompt, {"sample": first, "baseline": second}, criteria)
    (answers,) = asyncio.run(judge.ask([given]))
    return answers


@pytest.mark.parametrize(("first", "second", "winner"), [("ae", "x", -1), ("x", "aei", 1), ("a", "e", 0)])
def test_without_bias_both_orders_say_what_the_verifiers_say(first: str, second: str, winner: int) -> None:
    (pair,) = pair_verdicts(judge_answers(0.0, first, second)).values()
    assert (pair.given, pair.swapped, pair.consistent) == (winner, winner, True)


def test_with_bias_the_first_answer_wins_in_either_order() -> None:
    assert [answer.parsed["verdict"] for answer in judge_answers(1.0, "x", "aei") if answer.parsed] == ["A", "A"]


def test_the_biased_pairs_are_the_share_asked_for_and_the_same_in_both_orders() -> None:
    texts = [("row", str(n), str(n + 1)) for n in range(4000)]
    assert sum(draw(*text) < 0.3 for text in texts) / len(texts) == pytest.approx(0.3, abs=0.03)
    for n in range(40):
        found = {answer.parsed["verdict"] for answer in judge_answers(0.5, "ae" * (n + 1), "x") if answer.parsed}
        assert found in ({"A", "B"}, {"A"}), "the better answer in both orders, or the first in both"


def test_precision_counts_labels_that_the_truth_does_not_confirm(tmp_path: Path) -> None:
    """The judge keeps 8 of 10 pairs. The truth has a preference for 4 of these, and confirms 3."""
    row = {
        "label/pairs": 10.0,
        "label/kept": 0.8,
        "label/agreement/truth": 0.75,
        "label/agreement_pairs/truth": 4.0,
        "label/first_share": 0.6,
        "reward/truth": 0.4,
    }
    lines = [
        {"step": 1, "data": {"kind": "metrics", "values": row}},
        {"step": 2, "data": {"kind": "metrics", "values": {"eval/rubric_score": 0.5}}},
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert measures(path) == {
        "label precision": 3 / 8,
        "share kept": 0.8,
        "order bias": 0.6,
        "held-out score": 0.5,
        "sampled score": 0.4,
    }
