"""Trivial prompts: which ones are passed over. The random choice can be repeated, and a step is not left empty."""

from typing import Any

import pytest

from trainer.config import ConfigInvalid
from trainer.contracts import Example
from trainer.loops.prompts.data import Prompt
from trainer.loops.prompts.planner import Planner

from ..conftest import small_config


def planner(examples: list[Example], **pass_rates: Any) -> Planner:
    config = small_config(scaffold=None, pass_rates=pass_rates, data={"shuffle": False})
    return Planner(config, [Prompt(each, each.rubric, (1,)) for each in examples], None)


def prompts(found: Planner, step: int) -> list[str]:
    return list(dict.fromkeys(plan.example_key for plan in found.plan(step)))


def test_trivial_prompts_give_their_place_to_the_next_ones(examples: list[Example]) -> None:
    found = planner(examples, pass_over=1.0, trivial=0.75)
    found.pass_rates.learned({"row-0": [True] * 4, "row-1": [True, True, True, False], "row-2": [True, False]})
    assert prompts(found, 1) == ["row-2", "row-3"]
    assert found.passed_over == 2


def test_chance_decides_and_a_resumed_run_draws_as_the_whole_one(examples: list[Example]) -> None:
    def drawn() -> list[list[str]]:
        found = planner(examples, pass_over=0.5)
        found.pass_rates.learned({each.key: [True] for each in examples[:3]})
        return [prompts(found, step) for step in range(1, 60)]

    often = [key for step in drawn() for key in step]
    assert drawn() == drawn()
    shares = {key: often.count(key) for key in set(often)}
    assert 0.3 < shares["row-0"] / shares["row-4"] < 0.7


def test_where_every_prompt_is_trivial_a_step_takes_them_after_all(examples: list[Example]) -> None:
    found = planner(examples, pass_over=1.0)
    found.pass_rates.learned({each.key: [True] for each in examples})
    assert len(prompts(found, 1)) == 2
    assert found.passed_over == 10


def test_runs_that_sample_ahead_refuse_it() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        small_config(pass_rates={"pass_over": 0.5}, runner={"kind": "async"})
    assert "pass_rates.pass_over" in {problem.path for problem in caught.value.problems}
