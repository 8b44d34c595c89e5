"""The decision rule, on numbers worked out by hand."""

import math
from typing import Any

import pytest

from trainer.claims.recipes import RECIPES, SIZES, Claim, Part, merged
from trainer.claims.report import markdown
from trainer.claims.verdict import decide, judge, mean_over_seeds
from trainer.config import resolve

PART = Part("a over b", "score", "a", "b", margin=0.1)


def measures(a: list[float | None], b: list[float | None]) -> Any:
    return {
        "a": {seed: {"score": value} for seed, value in enumerate(a)},
        "b": {seed: {"score": value} for seed, value in enumerate(b)},
    }


def test_the_interval_is_students() -> None:
    found = mean_over_seeds([0.1, 0.2, 0.3])
    # Standard error 0.1 / sqrt(3); t(0.975, 2) = 4.302653.
    assert found.value == pytest.approx(0.2) and found.n == 3
    assert found.low == pytest.approx(0.2 - 4.302653 * 0.1 / math.sqrt(3), abs=1e-6)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.20, 0.21, 0.22], "holds"),
        ([0.01, 0.011, 0.012], "holds"),  # small, but beyond chance
        ([0.00, 0.01, -0.01], "does not hold here"),
        ([-0.3, -0.2, -0.25], "does not hold here"),
        ([0.3, -0.1, 0.2], "not decided"),
        ([0.3], "not decided"),
        ([], "not decided"),
    ],
)
def test_each_verdict(values: list[float | None], verdict: str) -> None:
    assert decide(mean_over_seeds(values), 0.1) == verdict


def test_differences_are_paired_by_seed() -> None:
    """The arms vary far more between seeds than within them."""
    result = judge(Claim("a beats b", (PART,)), measures([0.2, 0.5, 0.8], [0.1, 0.39, 0.71]))
    assert result.verdict == "holds"
    assert result.parts[0].difference.value == pytest.approx(0.1)


def test_a_seed_that_lacks_an_arm_is_counted_and_left_out() -> None:
    result = judge(Claim("a beats b", (PART,)), measures([0.5, 0.6, 0.7, None], [0.1, 0.2]))
    assert (result.parts[0].difference.n, result.parts[0].difference.missing) == (2, 2)


def test_less_can_be_better_and_an_arm_may_stand_alone() -> None:
    lower = Part("a loses less", "score", "a", "b", sign=-1)
    assert judge(Claim("", (lower,)), measures([0.1, 0.11], [0.5, 0.52])).verdict == "holds"
    alone = Part("a is above 0", "score", "a")
    assert judge(Claim("", (alone,)), measures([0.5, 0.52], [])).verdict == "holds"


def test_a_claim_needs_all_its_parts() -> None:
    fails, open_ = Part("", "score", "b", "a"), Part("", "nothing", "a", "b")
    found = measures([0.5, 0.52], [0.1, 0.11])
    assert judge(Claim("", (PART, fails)), found).verdict == "does not hold here"
    assert judge(Claim("", (PART, open_)), found).verdict == "not decided"


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("size", SIZES)
def test_every_run_of_a_recipe_has_a_config_that_works_and_every_part_its_arms(name: str, size: Any) -> None:
    recipe = RECIPES[name]
    arms = {arm.name for arm in recipe.arms}
    for arm in recipe.arms:
        config = resolve("policy", recipe.config(arm, size, seed=3))
        assert config.seed == 3 and config.steps == recipe.sizes[size].config["steps"]
    for claim in recipe.claims:
        assert {part.better for part in claim.parts} | {part.worse for part in claim.parts} <= arms | {None}


def test_settings_are_merged_by_section() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": None}, {"a": {"c": 3}, "d": {}}) == {"a": {"b": 1, "c": 3}, "d": {}}


def test_the_report_says_what_is_missing_rather_than_nothing() -> None:
    recipe = RECIPES["ruscarl"]
    about = {
        "command": "c",
        "machine": "m",
        "seconds": 60.0,
        "seeds": [0],
        "prompts": 4,
        "problems": ["rubric, seed 0: no"],
    }
    about["steps"] = 80
    text = markdown(recipe, "tiny", [judge(claim, {}) for claim in recipe.claims], {}, about)
    assert "none (no seed has a value)" in text and "not decided" in text and "rubric, seed 0: no" in text
