"""The form says how long a run would take and what its judges would use, by earlier runs; what is not known is said and is never 0."""

from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.pages import page_html
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from trainer.config import resolve
from webapp.experiments.launch import expected
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.models import MetricPoint, Run, RunJudge
from webapp.inference.models import RegisteredModel

from ..rewards.test_questions import GRADER, grader  # noqa: F401  a fixture
from ..test_api import body

CONFIG = {"steps": 40, "evaluation": {"every": 10, "max_examples": 40}}
JUDGED = {"steps": 40, "scaffold": None, "rewards": [{"kind": "rubric", "judge": GRADER}]}


def ran(run: Run, step_s=3.0, evaluation_s=None, steps=4, **fields) -> Run:
    """A run that has taken some steps; each took so long, and so did each evaluation."""
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(step=steps, first_metric_at=now, **fields)
    times = {"perf/step_s": step_s} | ({"perf/evaluation_s": evaluation_s} if evaluation_s else {})
    for key, value in times.items():
        MetricPoint.objects.bulk_create(
            MetricPoint(run=run, key=key, step=step, value=value, time=now) for step in range(1, steps + 1)
        )
    return run


def time_of(team, model, config=CONFIG, recipe="policy"):
    return expected.time(team.workspace.pk, recipe, resolve(recipe, config), model)


def test_the_time_of_steps_and_evaluations_is_that_of_the_newest_run_of_the_recipe_and_the_model(team, launch, model):
    assert time_of(team, model) == expected.ExpectedTime(how="no run of this recipe has trained this model here yet")
    ran(launch(), step_s=9.0)
    newest = ran(launch(config=CONFIG), step_s=3.0, evaluation_s=6.0)
    found = time_of(team, model)
    assert found.source == newest
    assert found.seconds == pytest.approx(40 * 3 + 5 * 6)  # it evaluates before step 1, and after 10, 20, 30 and 40
    assert (found.words, found.how) == ("about 2 min", "")
    other = RegisteredModel.objects.create(workspace=team.workspace, name="other", source="local", path="/models/other")
    assert time_of(team, other).words == "" and time_of(team, None).how == "choose a model first"
    assert time_of(team, model, {}, "sft").seconds is None


def test_a_step_that_does_more_takes_longer_and_the_nearest_run_counts(team, launch, model):
    small = ran(launch(config=CONFIG), step_s=1.0, evaluation_s=2.0)
    twice = CONFIG | {"rollout": {"group_size": 16}}
    found = time_of(team, model, twice)
    assert found.source == small and found.seconds == pytest.approx(40 * 2 + 5 * 2)
    assert found.how == "a step does 2 × as much"
    near = ran(launch(config=twice), step_s=2.5, evaluation_s=2.0)
    ran(launch(config=CONFIG), step_s=1.0)
    assert time_of(team, model, twice).source == near


def test_what_was_another_one_there_is_said(team, launch, model):
    ran(launch(config=CONFIG | {"model": {"lora": None}}))
    assert "there all weights were trained" in time_of(team, model).how
    assert "without evaluations, whose time is not known" in time_of(team, model).how
    Run.objects.update(learner_device="NVIDIA H200")
    assert time_of(team, model).seconds is None, "a card says nothing of a processor"


def test_runs_that_share_a_process_or_have_taken_no_step_say_nothing(team, launch, model):
    ran(launch(), carried_by="run-1-1")
    ran(launch(), steps=0)
    assert time_of(team, model).seconds is None


def use_of(team, config=JUDGED):
    return expected.judges(team.workspace.pk, "policy", resolve("policy", config))


def judged_run(launch, version, *, tokens=3200, money="0", calls=32, steps=4) -> Run:
    run = ran(launch(config=JUDGED), steps=steps)
    RunJudge.objects.create(run=run, version=version, calls=calls, tokens=tokens, money=Decimal(money))
    return run


def test_judges_are_expected_to_be_asked_as_often_as_in_earlier_runs(team, launch, model, grader):  # noqa: F811
    assert use_of(team, CONFIG) is None, "no judge is asked"
    assert use_of(team) == expected.ExpectedUse(how=f"no earlier run of this recipe has asked {GRADER}")
    run = judged_run(launch, grader)  # 32 responses a step, of which each is asked about 0.25 times
    found = use_of(team)
    assert found.source == run and found.tokens == pytest.approx(32_000) and found.money is None
    assert (found.words, found.how) == ("about 32,000 tokens", "about 320 calls; cost not known: no prices")
    assert use_of(team, JUDGED | {"steps": 80}).tokens == pytest.approx(64_000)
    assert use_of(team, JUDGED | {"rollout": {"group_size": 4}}).tokens == pytest.approx(16_000)


def test_the_cost_is_that_of_the_tokens_in_runs_that_had_a_price(team, launch, model, grader):  # noqa: F811
    judged_run(launch, grader)
    endpoint = grader.endpoint  # noqa: F811
    type(endpoint).objects.filter(pk=endpoint.pk).update(price_prompt=1, price_completion=2)
    assert use_of(team).money is None, "the run was before the prices, so its 0 is not a cost"
    judged_run(launch, grader, money="0.32")
    found = use_of(team)
    assert found.money == pytest.approx(3.2)
    assert "cost about 3.2 by the prices of their endpoints" in found.how and "1 other run" in found.how
    type(endpoint).objects.filter(pk=endpoint.pk).update(price_prompt=0, price_completion=0)
    assert use_of(team).money == 0


def test_the_form_shows_both_and_costs_the_same_for_any_number_of_runs(team, launch, model, grader, as_researcher):  # noqa: F811
    def page():
        form = RunForm.blank(team.researcher)
        form.raw |= JUDGED
        with CaptureQueriesContext(connection) as queries:
            assert form.time.seconds and form.judges.tokens
        return len(queries)

    judged_run(launch, grader)
    few = page()
    for _ in range(4):
        judged_run(launch, grader)
    assert page() == few
    newest = Run.objects.latest("id")
    seen = page_html(as_researcher.get("/runs/new?recipe=policy"))
    assert f'href="/runs/{newest.pk}"' in seen and "of the same recipe and model" in seen


def test_the_api_tells_both_with_a_check(team, launch, model, grader, api):  # noqa: F811
    dataset = {"id": launch().data.dataset_id}
    nothing = body(api.post("/recipes/policy/check", {"config": CONFIG}))
    assert nothing["time"] is None and nothing["judges"] is None
    unknown = body(api.post("/recipes/policy/check", {"config": CONFIG, "dataset": dataset}))
    assert unknown["time"]["seconds"] is None and "no run of this recipe" in unknown["time"]["why"]
    newest = ran(launch(config=CONFIG), step_s=3.0, evaluation_s=6.0)
    known = body(api.post("/recipes/policy/check", {"config": CONFIG, "dataset": dataset}))
    assert known["time"] == {"seconds": pytest.approx(150), "run": newest.pk, "why": ""}
    assert known["judges"] is None, "this config asks no judge"
    judged = body(api.post("/recipes/policy/check", {"config": JUDGED, "dataset": dataset}))
    assert judged["judges"]["tokens"] is None and "no earlier run" in judged["judges"]["why"]
