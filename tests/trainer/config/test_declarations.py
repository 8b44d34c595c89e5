"""Declarations of recipes are complete and consistent: metrics, needs and examples."""

from collections import Counter
from typing import Any

import pytest

from trainer.config import RECIPES, resolve
from trainer.config.fields import Section
from trainer.config.metrics.common import GROUPS
from trainer.config.recipe import HELD_OUT, Metric, Recipe, with_ends
from trainer.contracts import COUNTS


@pytest.fixture(params=RECIPES.values(), ids=list(RECIPES))
def recipe(request) -> Recipe:
    return request.param


def test_every_key_is_declared_once_and_in_a_group_of_the_page(recipe):
    assert [key for key, n in Counter(metric.key for metric in recipe.metrics).items() if n > 1] == []
    assert {metric.group for metric in (*recipe.metrics, *recipe.histograms, *recipe.traces)} <= {
        group.id for group in GROUPS
    }


def test_what_is_named_elsewhere_is_declared(recipe):
    beside = [key for metric in recipe.metrics for key in (metric.band, metric.count, *metric.ends) if key]
    drawn = [key for trace in recipe.traces for key in (trace.x, trace.y)]
    for key in (recipe.headline, *recipe.stats, *beside, *drawn):
        assert recipe.metric(key), key
    assert recipe.top[0].key == recipe.headline and recipe.pulse


def test_charts_that_metrics_share_lie_in_one_group_and_have_one_unit(recipe):
    for chart in {metric.chart for metric in recipe.metrics if metric.chart}:
        inside = [metric for metric in recipe.metrics if metric.chart == chart]
        assert len({(metric.group, metric.unit, metric.share) for metric in inside}) == 1, chart
        assert any(metric.help for metric in inside), chart


def test_no_two_charts_of_a_group_have_one_name(recipe):
    shared = {(metric.group, metric.chart) for metric in recipe.metrics if metric.chart}
    own = [(metric.group, metric.title) for metric in recipe.metrics if not metric.chart]
    assert [name for name, n in Counter([*shared, *own]).items() if n > 1] == []


@pytest.mark.parametrize("name", ["policy", "chain"])
def test_the_domains_of_the_data_are_curves_of_one_chart(name):
    assert RECIPES[name].metric("eval/domain/first").chart == RECIPES[name].metric("eval/domain/second").chart != ""


def test_the_gap_that_distillation_is_about_comes_first():
    outcome = [metric for metric in RECIPES["distill"].metrics if metric.group == "outcome"]
    assert outcome[0].key == RECIPES["distill"].headline == "eval/gap" and not outcome[0].optional


def test_every_metric_says_what_it_means(recipe):
    assert [metric.key for metric in recipe.metrics if not metric.help and not metric.chart] == []


def test_an_exact_key_comes_before_a_pattern():
    policy = RECIPES["policy"]
    assert policy.metric("reward/mean").title == "Reward"
    assert policy.metric("reward/brevity").key == "reward/*"
    assert policy.metric("nobody/knows") is None


@pytest.mark.parametrize("name, before", [("policy", ""), ("iterative_dpo", ""), ("alternating", "judge/")])
def test_how_many_lack_a_part_is_not_drawn_among_its_values(name, before):
    value, lacking = (RECIPES[name].metric(f"{before}reward/{each}") for each in ("form", "form_excluded"))
    assert (value.key, lacking.key) == (f"{before}reward/*", f"{before}reward/*_excluded")
    assert value.chart != lacking.chart and lacking.unit and not value.unit
    assert RECIPES[name].metric(f"{before}reward/_excluded").key == f"{before}reward/*", "the star stands for something"


def test_the_small_curve_is_one_that_every_step_measures():
    policy = RECIPES["policy"]
    assert policy.pulse.key == "reward/mean" and not policy.pulse.held_out
    assert policy.headline.startswith(HELD_OUT)


def test_a_summary_keeps_what_is_shown_on_top_and_what_evaluations_measure():
    policy = RECIPES["policy"]
    kept = {key for key in ("eval/length", "reward/mean", "policy/loss", "criterion/words") if policy.remembers(key)}
    assert kept == {"eval/length", "reward/mean"}
    assert Metric("perf/x", "training", "", "speed", chart="Throughput").label == "Throughput, training"


def test_every_need_is_counted(recipe):
    for need in recipe.needs:
        assert {need.count, *(key for key, _ in need.left_out)} <= set(COUNTS)


def test_the_example_of_a_recipe_is_a_config(recipe):
    assert resolve(recipe.name, dict(recipe.example)).steps <= 10


def test_every_recipe_says_in_a_line_what_tells_its_runs_apart(recipe):
    config = resolve(recipe.name, {}).model_dump(mode="json")
    assert len(recipe.says(config)) == len(recipe.brief) >= 1 and "{" not in "".join(recipe.says(config))
    assert recipe.says({}) == [], "a config of before these fields says nothing rather than something wrong"


def test_the_ends_of_an_interval_have_the_names_of_what_they_are_ends_of():
    one = with_ends(Metric("eval/rc", "Consistency", "", "outcome", share=True), "95%.")
    assert [(each.key, each.title, each.ends) for each in one] == [
        ("eval/rc", "Consistency", ("eval/rc_low", "eval/rc_high")),
        ("eval/rc_low", "Consistency, lower end", ()),
        ("eval/rc_high", "Consistency, upper end", ()),
    ]
    assert all(end.share and end.optional and end.help == "95%." and end.group == "outcome" for end in one[1:])


def test_ends_of_a_pattern_are_patterns():
    many = with_ends(Metric("eval/domain/*", "By domain", "", "data", chart="By domain"), "95%.")
    assert [each.key for each in many] == ["eval/domain/*", "eval/domain_low/*", "eval/domain_high/*"]
    assert many[0].ends == ("eval/domain_low/*", "eval/domain_high/*")


@pytest.mark.parametrize("name", RECIPES)
def test_a_section_that_is_given_in_part_has_the_rest_from_the_recipe(name):
    """The defaults of a recipe may differ from those of a section's class, such as the 256 tokens of a judge."""
    recipe = RECIPES[name]
    whole = resolve(name, dict(recipe.example))
    for path, field in recipe.schema.model_fields.items():
        section = field.default
        if not isinstance(section, Section) or path in recipe.example:
            continue
        for inner, value in section.model_dump(mode="json").items():
            given = resolve(name, {**recipe.example, path: {inner: value}})
            assert getattr(given, path) == getattr(whole, path), f"{path}.{inner}"


def test_a_section_of_another_kind_takes_nothing_from_the_default():
    example = {key: value for key, value in RECIPES["alternating"].example.items() if key != "objective"}

    def objective(**given: object) -> Any:
        return getattr(resolve("alternating", {**example, "objective": given}), "objective")  # noqa: B009 - of its own class

    assert objective(kl_beta=0.5).eps_high == objective(name="grpo", kl_beta=0.5).eps_high == 0.28
    other = objective(name="dr_grpo")
    assert other == type(other)()
