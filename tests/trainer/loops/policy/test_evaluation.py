"""The report of an evaluation about the policy: the responses that it draws, and the interval of its mean."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from trainer.loops.policy.evaluation import EvaluatedPolicy, evaluate
from trainer.rewards import Item
from trainer.rollouts import Reward, RewardWatch

from ..conftest import small_config

SCORES = {(0, 0): 1.0, (0, 1): 0.0, (1, 0): 0.75, (1, 1): None}  # (prompt, response): prompt means 0.5 and 0.75


def evaluated(
    make_loop: Callable[..., Any],
    samples: int,
    scores: dict[tuple[int, int], float | None],
    rubric: bool = True,
    domains: tuple[str, str] = ("", ""),
) -> EvaluatedPolicy:
    config = small_config(evaluation={"samples": samples, "temperature": 1.0, "every": 2})
    parts = make_loop(config).stage.parts
    parts.prompts.heldout[:] = [
        replace(prompt, example=prompt.example.model_copy(update={"domain": domain}))
        for prompt, domain in zip(parts.prompts.heldout, domains, strict=False)
    ]
    if not rubric:
        parts.prompts.heldout[:] = [replace(prompt, rubric=None) for prompt in parts.prompts.heldout]
    order = iter([scores[group, sample] for group in range(2) for sample in range(samples)])

    def rated(score: float | None) -> float | None:
        return score if rubric else None

    class Scripted:
        longest = 8
        asks = False

        def begin(self, items: Sequence[Item]) -> Any:
            return len(items)

        def finish(self, begun: Sequence[Any], watch: RewardWatch | None = None) -> list[Reward]:
            return [
                Reward(
                    score, score=rated(score), clipped=rated(score), excluded="" if score is not None else "no verdict"
                )
                for score, _ in zip(order, range(sum(begun)), strict=True)
            ]

    return evaluate(parts, Scripted(), "eval/0")


def test_every_prompt_gets_its_responses_each_with_its_own_draw(make_loop: Callable[..., Any]) -> None:
    found = evaluated(make_loop, 2, dict.fromkeys(SCORES, 1.0)).trajectories
    assert [(t.plan.group, t.plan.index) for t in found] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len({t.plan.seed for t in found}) == 4


def test_the_error_counts_prompts_not_responses_and_leaves_out_what_has_no_score(make_loop: Callable[..., Any]) -> None:
    values = evaluated(make_loop, 2, SCORES).values
    assert values["eval/excluded"] == 1
    assert values["eval/rubric_score"] == pytest.approx(1.75 / 3)
    # Prompt means 0.5 and 0.75: variance 0.03125, over 2 prompts.
    assert values["eval/rubric_score_se"] == pytest.approx(math.sqrt(0.03125 / 2))


def test_without_a_rubric_what_has_a_reward_is_not_excluded(make_loop: Callable[..., Any]) -> None:
    values = evaluated(make_loop, 2, SCORES, rubric=False).values
    assert values["eval/excluded"] == 1 and values["eval/reward"] == pytest.approx(1.75 / 3)
    assert "eval/rubric_score" not in values


def test_one_scored_prompt_has_no_error(make_loop: Callable[..., Any]) -> None:
    one = evaluated(make_loop, 1, {(0, 0): 1.0, (1, 0): None})
    assert "eval/rubric_score_se" not in one.values


@pytest.mark.parametrize("domains", [("easy", "hard"), ("easy", "easy")])
def test_each_domain_has_its_mean_where_there_are_several(
    domains: tuple[str, str], make_loop: Callable[..., Any]
) -> None:
    values = evaluated(make_loop, 2, SCORES, domains=domains).values
    found = {key: value for key, value in values.items() if key.startswith("eval/domain/")}
    # one response to the second prompt has no score
    assert found == ({"eval/domain/easy": 0.5, "eval/domain/hard": 0.75} if domains[1] == "hard" else {})
