"""Many runs beside each other. Nothing is left out, and means and paired differences are as worked out by hand."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.http import urlencode

from tests.team import ApiClient, browser
from webapp.experiments import access
from webapp.experiments.bulk import StepMetrics
from webapp.experiments.metrics import facts, series
from webapp.experiments.models import MetricPoint, Run
from webapp.experiments.table import compare_api, comparing

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def four(make):
    """Two configs with the seeds 0 and 1, and a third seed that only the first has."""
    scores = {("a", 0): 0.2, ("a", 1): 0.4, ("a", 2): 0.9, ("b", 0): 0.3, ("b", 1): 0.7}
    return [
        make(f"{name}{seed}", seed=seed, lr=1e-5 if name == "a" else 1e-4, scores=[0.1, score])
        for (name, seed), score in scores.items()
    ]


def ids(runs) -> str:
    return ",".join(str(run.pk) for run in runs)


def test_what_differs_is_told_and_the_rest_is_not(api, four):
    told = api.get("/runs/table/compare", ids=ids(four)).json()
    assert [row["path"] for row in told["config"]] == ["optim.lr", "seed"]
    rate = told["config"][0]
    assert [rate["values"][which] for which in rate["held"]] == [1e-5] * 3 + [1e-4] * 2
    assert [(each["label"], each["runs"]) for each in told["families"]] == [
        ("lr 1e-05", [0, 1, 2]),
        ("lr 0.0001", [3, 4]),
    ]


def test_seeds_that_do_not_differ_otherwise_are_not_named_after_one_of_them(api, four):
    Run.objects.filter(pk=four[0].pk).update(name="rates, trial 2, seed 0")
    for runs, label in ((four[:3], "rates, trial 2"), (four[:1], "rates, trial 2, seed 0")):
        told = api.get("/runs/table/compare", ids=ids(runs)).json()
        assert [each["label"] for each in told["families"]] == [label]


def test_means_over_seeds_and_differences_paired_by_seed(api, four):
    told = api.get("/runs/table/compare", ids=ids(four), keys="eval/score", baseline=four[0].pk).json()
    (finals,) = told["finals"]
    assert told["baseline"] == 0
    assert [(each["value"], each["n"]) for each in finals["families"]] == [(0.5, 3), (0.5, 2)]
    itself, other = finals["against"]
    assert (itself["value"], itself["n"], itself["missing"]) == (0.0, 3, 0)
    # seeds 0 and 1: 0.1 and 0.3; mean 0.2, s / sqrt(2) = 0.1, t(1) at 97.5% = 12.7062
    assert (other["value"], other["n"], other["missing"]) == (0.2, 2, 1)
    assert (other["low"], other["high"]) == (
        pytest.approx(0.2 - 1.27062, abs=1e-4),
        pytest.approx(0.2 + 1.27062, abs=1e-4),
    )


def test_runs_of_one_seed_count_as_one(api, make, four):
    again = [make(f"a0 again {place}", seed=0, lr=1e-5, scores=[0.1, score]) for place, score in enumerate((0.2, 0.5))]
    told = api.get("/runs/table/compare", ids=ids([*four, *again]), keys="eval/score", baseline=four[0].pk).json()
    (finals,) = told["finals"]
    # seed 0 of the first has 0.2, 0.2, 0.5: mean 0.3; with 0.4 and 0.9 the mean is 1.6 / 3
    assert [(round(each["value"], 4), each["n"]) for each in finals["families"]] == [(0.5333, 3), (0.5, 2)]
    # paired: seed 0 0.3 - 0.3, seed 1 0.7 - 0.4
    other = finals["against"][1]
    assert (other["value"], other["n"], other["missing"]) == (pytest.approx(0.15), 2, 1)


def test_answers_are_as_the_document_says(api, four):
    """The answers are written without their schemas."""
    points(four[0], {1: 1.0})
    for path, schema in (("compare", compare_api.RunsComparedOut), ("curves", compare_api.ComparedCurves)):
        told = api.get(f"/runs/table/{path}", ids=ids(four), **({"key": "loss"} if path == "curves" else {})).json()
        schema.model_validate(told)
        assert set(told) == set(schema.model_fields)


@pytest.mark.parametrize(
    ("recipe", "key", "words", "share"),
    [
        ("policy", "criterion/bullet_count", "Criteria met: bullet count", True),
        ("policy", "reward/mean", "Reward", False),
        ("policy", "eval/domain/law", "Held-out score by domain: law", False),
        ("reward_model", "eval/domain/law", "Accuracy by domain: law", True),
        ("reward_model", "eval/domain_low/law", "Accuracy by domain, lower end: law", True),
        ("logged", "criterion/bullet_count", "criterion/bullet_count", False),
    ],
)
def test_metrics_have_the_names_that_the_recipes_of_the_runs_give_them(api, four, recipe, key, words, share):
    Run.objects.update(recipe=recipe)
    facts.keep_metrics(four[0].experiment.workspace_id, four[0], series.of_steps([StepMetrics(1, NOON, {key: 0.5})]))
    told = api.get("/runs/table/compare", ids=ids(four), keys=key).json()
    assert [(each["label"], each["share"]) for each in told["metrics"]] == [(words, share)]
    assert [(each["label"], each["share"]) for each in told["finals"]] == [(words, share)]


def test_metrics_beyond_the_first_fifty_have_names_without_values(api, four, monkeypatch):
    monkeypatch.setattr(comparing, "MOST_KEYS", 2)
    keys = ["criterion/bullet_count", "eval/rubric_score", "loose/a", "loose/b"]
    step = StepMetrics(1, NOON, dict.fromkeys(keys, 0.5))
    facts.keep_metrics(four[0].experiment.workspace_id, four[0], series.of_steps([step]))
    told = api.get("/runs/table/compare", ids=ids(four)).json()
    assert [len(told[name]) for name in ("keys", "metrics", "others")] == [5, 2, 3]
    named = {each["key"]: (each["label"], each["share"]) for each in (*told["metrics"], *told["others"])}
    assert named.keys() == set(told["keys"]), "every metric has its name once"
    assert named["criterion/bullet_count"] == ("Criteria met: bullet count", True)
    assert named["eval/rubric_score"][0] == "Held-out rubric score" and named["loose/a"] == ("loose/a", False)
    assert api.get("/runs/table/compare", ids=ids(four), keys="eval/score").json()["others"] == []


def test_a_run_without_a_path_differs_from_those_that_have_it(api, four):
    four[0].values.filter(column__path="optim.lr").delete()
    four[0].values.filter(column__path="steps").update(number=None, text="4")
    told = {row["path"]: row for row in api.get("/runs/table/compare", ids=ids(four)).json()["config"]}
    assert told["optim.lr"]["values"][told["optim.lr"]["held"][0]] is None
    assert told["steps"]["values"] == ["4", 4.0]


def test_more_than_can_be_compared_are_refused_and_none_is_dropped(api, four, monkeypatch, as_researcher):
    monkeypatch.setattr(comparing, "MOST_RUNS", 4)
    for asked in ({"ids": ids(four)}, {"q": "eval/score>0"}):
        refused = api.get("/runs/table/compare", **asked)
        assert refused.status_code == 422
        assert refused.json()["error"]["fields"][0]["path"] == next(iter(asked))
    page = as_researcher.get("/runs/compare", {"ids": ids(four)}, follow=True)
    assert "1 to 4 runs at once" in page.content.decode()
    assert len(api.get("/runs/table/compare", q="eval/score>0.25").json()["runs"]) == 4


def test_axes_name_the_metrics_that_tell_them(api, four, make):
    assert api.get("/runs/table/compare", ids=ids(four)).json()["axes"] == []
    for run, key in zip(four, ("num_tokens", "rollout/tokens", "rollout/responses"), strict=False):
        step = StepMetrics(1, NOON, {key: 5.0})
        facts.keep_metrics(run.experiment.workspace_id, run, series.of_steps([step]))
    assert api.get("/runs/table/compare", ids=ids(four)).json()["axes"] == [
        {
            "name": "tokens",
            "metrics": [{"key": "rollout/tokens", "summed": True}, {"key": "num_tokens", "summed": False}],
        },
        {"name": "samples", "metrics": [{"key": "rollout/responses", "summed": True}]},
    ]


def test_an_address_outlives_runs_that_are_deleted(four, as_researcher, team):
    page = as_researcher.get("/runs/compare", {"ids": f"{ids(four[:2])},999999999"})
    assert page.status_code == 200 and page.context["asked"] == urlencode({"ids": ids(four[:2])})
    assert "1 run of this address is not here any more." in page.content.decode()
    for answer in (
        as_researcher.get("/runs/compare", {"ids": "999999998,999999999"}, follow=True),
        browser(team.outsider).get("/runs/compare", {"ids": ids(four[:2])}, follow=True),
    ):
        assert answer.redirect_chain == [("/experiments", 302)]
        assert "2 runs of this address are not here any more." in answer.content.decode()


def test_many_runs_are_told_as_few_are(api, four, monkeypatch):
    """What they share is read once for many, and with each run for few. One of them was measured in another way."""
    config = {**four[3].config, "evaluation": {**four[3].config["evaluation"], "temperature": 0.25}}
    Run.objects.filter(pk__in=[run.pk for run in four]).update(summary={"eval/rubric_score": 0.5})
    Run.objects.filter(pk=four[3].pk).update(config=config)
    few = api.get("/runs/table/compare", ids=ids(four)).json()
    monkeypatch.setattr(access, "MANY", 1)
    assert api.get("/runs/table/compare", ids=ids(four)).json() == few
    assert list(few["unlike"]) == [str(four[3].pk)]
    assert few["unlike"][str(four[3].pk)].startswith("evaluation.temperature 0.25, where ")


def test_runs_of_others_are_not_there(four, team):
    assert ApiClient(team.outsider).get("/runs/table/compare", ids=ids(four)).status_code == 404
    assert ApiClient(team.outsider).get("/runs/table/curves", ids=ids(four), key="eval/score").status_code == 404
    assert ApiClient(team.annotator).get("/runs/table/compare", ids=ids(four)).status_code == 403


def points(run: Run, values: dict[int, float]) -> None:
    rows = [
        MetricPoint(run=run, key="loss", step=step, value=value, time=NOON + timedelta(seconds=10 * step))
        for step, value in values.items()
    ]
    MetricPoint.objects.bulk_create(rows)


def test_short_curves_come_as_they_were_sent(api, four):
    points(four[0], {3: 1.0, 5: 2.0})
    points(four[1], {4: 7.0})
    told = api.get("/runs/table/curves", ids=ids(four), key="loss").json()
    assert told["exact"] and told["steps"] == [3, 4, 5]
    assert told["curves"] == [
        {"run": four[0].pk, "values": [1.0, None, 2.0], "times": [0, None, 20]},
        {"run": four[1].pk, "values": [None, 7.0, None], "times": [None, 0, None]},
    ]


def test_long_curves_are_means_of_equal_stretches(api, four):
    points(four[0], {step: float(step) for step in range(100)})
    told = api.get("/runs/table/curves", ids=ids(four), key="loss", points=4).json()
    assert not told["exact"] and told["points"] == 4
    assert told["steps"] == [12.5, 37.5, 62.5, 87.5]
    assert told["curves"][0]["values"] == [12.0, 37.0, 62.0, 87.0]


def test_comparing_costs_the_same_however_many_runs(api, four, make):
    with CaptureQueriesContext(connection) as few:
        api.get("/runs/table/compare", ids=ids(four[:2]))
    more = [*four, *(make(f"c{seed}", seed=seed, lr=1e-3, scores=[0.5]) for seed in range(3))]
    with CaptureQueriesContext(connection) as many:
        assert len(api.get("/runs/table/compare", ids=ids(more)).json()["runs"]) == 8
    assert len(many) <= len(few)


@pytest.mark.parametrize("value", [1.7976931348623157e308, -1.7976931348623157e308, 0.123456789, None])
def test_a_short_number_is_finite_and_near(value):
    short = compare_api._short(value)
    assert short == (0.12346 if value == 0.123456789 else value)
