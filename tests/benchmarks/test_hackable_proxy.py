"""The rewards of the hackable proxy. The config of every arm works, each arm pays for the right thing, and the results of a run are read."""

import asyncio
from typing import Any

import pytest

from benchmarks.hackable_proxy import ARMS, MEASURES, WORDS, config, curves, examples
from trainer.config import PolicyConfig, resolve
from trainer.config.rewards.parts import parsed
from trainer.contracts import Example
from trainer.rewards import Item, Services, scoring


def worth(arm: str, response: str, tokens: int) -> float:
    found = resolve("policy", config(arm, steps=2, seed=0))
    assert isinstance(found, PolicyConfig)
    example = examples()[0]
    item = Item("train/1/0/0", example, example.rubric, response, tokens, found.rollout.max_new_tokens)
    expression = parsed(found.rewards, found.reward_expression)
    [composed] = asyncio.run(scoring.score(found.rewards, [item], Services(), _never, None, expression))
    assert composed.total is not None
    return composed.total


async def _never(reason: str) -> None:
    raise AssertionError(reason)


def response_text(example: Example, wanted: int, words: int) -> str:
    belongs = [criterion.text for criterion in example.rubric.criteria[:4]] if example.rubric else []
    return " ".join([*belongs[:wanted], *["xx"] * (words - wanted)])


@pytest.mark.parametrize(
    ("arm", "wanted", "words", "tokens", "value"),
    [
        ("truth alone", 2, 4, 16, 0.5),
        ("truth alone", 2, WORDS + 1, 16, 0.0),
        ("length alone", 0, 4, 1, 0.0),
        ("length alone", 0, 4, 32, 1.0),
        ("sum", 4, WORDS + 1, 32, 1.5),
        ("sum", 4, WORDS, 1, 1.0),
        ("gate", 0, 4, 32, 0.0),
        ("gate", 1, 4, 32, 1.0),
        ("gate", 1, WORDS + 1, 32, 0.0),
        ("gate", 3, WORDS + 1, 32, 1.0),
    ],
)
def test_what_each_arm_pays(arm: str, wanted: int, words: int, tokens: int, value: float) -> None:
    assert worth(arm, response_text(examples()[0], wanted, words), tokens) == pytest.approx(value)


def test_the_arms_are_alike_but_for_the_reward() -> None:
    made: list[dict[str, Any]] = [config(arm, steps=2, seed=1) for arm in ARMS]
    for each in made:
        del each["rewards"], each["reward_expression"]
    assert all(each == made[0] for each in made)


def test_curves_are_read_by_step_and_the_proxy_counts_upwards() -> None:
    rows = {0: {"eval/rubric_score": 0.1, "eval/length": 9.0}}
    rows |= {step: {"reward/truth": 0.1 * step, "reward/brevity": -0.2 * step} for step in (1, 2)}
    rows[2] |= {"eval/rubric_score": -0.3, "eval/length": 30.0}
    found = curves(rows)
    assert found["length"] == [0.2, 0.4] and found["held-out steps"] == [0.0, 2.0]
    read = {name: measure(found) for name, measure in MEASURES.items()}
    assert (read["truth, untrained"], read["truth, best"], read["truth, last"]) == (0.1, 0.1, -0.3)
    assert read["tokens, last"] == 30.0
