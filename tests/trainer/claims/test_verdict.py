"""The decision rule, compared with numbers worked out by hand."""

import math
import sys
from fnmatch import fnmatchcase
from typing import Any

import pytest

from trainer.claims.report import markdown
from trainer.config import RECIPES, resolve
from trainer.metrics.claims import PLANS, Claim, ClaimPart, judge_all, mean_over_seeds
from trainer.metrics.claims.curves import metric_of
from trainer.metrics.claims.plan import merge_config
from trainer.metrics.claims.verdict import decide, holm, judge, p_value

PART = ClaimPart("a over b", "score", "a", "b", margin=0.1)


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


def test_values_that_are_too_far_apart_have_a_mean_and_no_interval() -> None:
    apart = mean_over_seeds([0.5, 1e200])
    assert (apart.value, apart.low, apart.high) == (5e199, None, None) and apart.interval
    largest = sys.float_info.max
    assert mean_over_seeds([largest, largest]).value == largest


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
    """Values differ far more between seeds than between the arms of a seed."""
    result = judge(Claim("a beats b", (PART,)), measures([0.2, 0.5, 0.8], [0.1, 0.39, 0.71]))
    assert result.verdict == "holds"
    assert result.parts[0].difference.value == pytest.approx(0.1)


def test_a_seed_that_lacks_an_arm_is_counted_and_left_out() -> None:
    result = judge(Claim("a beats b", (PART,)), measures([0.5, 0.6, 0.7, None], [0.1, 0.2]))
    assert (result.parts[0].difference.n, result.parts[0].difference.missing) == (2, 2)


def test_less_can_be_better_and_an_arm_may_stand_alone() -> None:
    lower = ClaimPart("a loses less", "score", "a", "b", sign=-1)
    assert judge(Claim("", (lower,)), measures([0.1, 0.11], [0.5, 0.52])).verdict == "holds"
    alone = ClaimPart("a is above 0", "score", "a")
    assert judge(Claim("", (alone,)), measures([0.5, 0.52], [])).verdict == "holds"


def test_a_claim_needs_all_its_parts() -> None:
    fails, open_ = ClaimPart("", "score", "b", "a"), ClaimPart("", "nothing", "a", "b")
    found = measures([0.5, 0.52], [0.1, 0.11])
    assert judge(Claim("", (PART, fails)), found).verdict == "does not hold here"
    assert judge(Claim("", (PART, open_)), found).verdict == "not decided"


@pytest.mark.parametrize("name", PLANS)
def test_every_run_of_a_plan_has_a_config_that_works_and_every_part_its_arms(name: str) -> None:
    plan = PLANS[name]
    for setting in plan.sizes.values():
        for arm in plan.arms:
            config = resolve(plan.recipe_of(arm), plan.config(arm, setting.config, seed=3))
            assert plan.used(arm).keys() == arm.uses.keys()
            assert config.seed == 3 and config.steps == setting.config["steps"]
    for claim in plan.claims:
        for part in claim.parts:
            assert plan.arm(part.better) and (part.worse is None or plan.arm(part.worse))
    with pytest.raises(KeyError):
        plan.arm("nobody")


@pytest.mark.parametrize("plan", [plan for plan in PLANS.values() if plan.measured == "curves"], ids=lambda p: p.name)
def test_what_is_read_off_curves_is_measured_by_the_recipe(plan: Any) -> None:
    recipes = {plan.recipe_of(arm) for arm in plan.arms}
    keys = [
        metric.key for recipe in recipes for metric in RECIPES[recipe].metrics
    ]  # `eval/domain/*` stands for a whole family
    read = {metric_of(each) for size in plan.sizes for each in plan.measures(size)}
    assert {each for each in read if not any(fnmatchcase(each, key) for key in keys)} == set()


def test_p_values_are_students() -> None:
    # mean 0.2, standard error 0.1 / sqrt(3), t = 3.4641 with 2 degrees of freedom
    assert p_value([0.1, 0.2, 0.3]) == pytest.approx(0.0742, abs=1e-4)
    assert p_value([-0.1, -0.2]) == p_value([0.3]) == p_value([]) == 1.0
    assert p_value([0.1, 0.1, None]) == 0.0


def test_holm_multiplies_the_smallest_most_and_never_turns_round() -> None:
    # sorted 0.01, 0.03, 0.04: times 3, 2, 1 is 0.03, 0.06, 0.04, and the last may not lie below the one before
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0] and holm([]) == []


def test_a_claim_that_holds_by_itself_may_not_hold_beside_others() -> None:
    found = measures([0.5, 0.6, 0.7], [0.3, 0.2, 0.4])
    alone = judge_all([Claim("a beats b", (PART,))], found)[0]
    # differences 0.2, 0.4, 0.3: t = 0.3 / (0.1 / sqrt(3)) = 5.196, p = 0.0351
    assert alone.p == pytest.approx(0.0351, abs=1e-4) and alone.corrected == alone.verdict == "holds"
    never = Claim("b beats a", (ClaimPart("", "score", "b", "a", margin=0.1),))
    first, second = judge_all([Claim("a beats b", (PART,)), never], found)
    assert first.adjusted == pytest.approx(0.0702, abs=1e-4)
    assert (first.verdict, first.corrected) == ("holds", "not decided")
    assert second.corrected == "does not hold here"


def test_settings_are_merged_by_section() -> None:
    assert merge_config({"a": {"b": 1, "c": 2}, "d": None}, {"a": {"c": 3}, "d": {}}) == {
        "a": {"b": 1, "c": 3},
        "d": {},
    }


def test_the_report_says_what_is_missing_rather_than_nothing() -> None:
    plan = PLANS["ruscarl"]
    about = {
        "command": "c",
        "machine": "m",
        "seconds": 60.0,
        "seeds": [0],
        "prompts": 4,
        "problems": ["rubric, seed 0: no"],
    }
    about["steps"] = 80
    text = markdown(plan, "tiny", judge_all(plan.claims, {}), {}, about)
    assert "none (no seed has a value)" in text and "not decided" in text and "rubric, seed 0: no" in text
