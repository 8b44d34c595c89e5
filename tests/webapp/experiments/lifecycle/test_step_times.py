"""The time of a run before its own process can say it: from its own steps, from runs of its family, from runs of its recipe and model."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from webapp.experiments.lifecycle import jobs, step_times, waiting_reasons
from webapp.experiments.lifecycle.line_order import Free
from webapp.experiments.models import MetricPoint, Run

from ..conftest import ray as ray_server  # noqa: F401 - a fixture
from .test_jobs import fresh, set_row


@pytest.fixture
def ray(ray_server):  # noqa: F811
    return ray_server


def took(run, *seconds, first=1):
    now = timezone.now()
    points = [MetricPoint(run=run, key="perf/step_s", step=i, value=s, time=now) for i, s in enumerate(seconds, first)]
    MetricPoint.objects.bulk_create(points)
    set_row(run, step=first + len(seconds) - 1)
    return fresh(run)


def named(run) -> Run:
    return Run.objects.with_names().get(pk=run.pk)


def pace(run) -> float | None:
    return step_times.step_s([named(run)]).get(run.pk)


def test_a_run_of_which_nothing_is_known_has_no_time(launch):
    assert (
        pace(launch()) is None
        and step_times.seconds_left(named(launch()), None) is None
        and step_times.step_s([]) == {}
    )


def test_earlier_runs_of_the_recipe_and_model_by_the_median_of_their_medians(launch):
    for seconds in ((10.0, 12.0, 500.0), (20.0,), (900.0,)):  # medians 12, 20, 900
        set_row(took(launch(), *seconds), family="")
    other = launch()
    set_row(other, family="x")
    assert pace(other) == 20.0
    assert step_times.seconds_left(named(other), 20.0) == 20.0 * fresh(other).steps_total


def test_runs_that_differ_by_the_seed_alone_come_first_and_the_own_steps_before_them(launch):
    alike, unlike, new = took(launch(), 30.0), took(launch(), 99.0), launch()
    for run, family in ((alike, "f"), (unlike, "g"), (new, "f")):
        set_row(run, family=family)
    assert pace(new) == 30.0
    took(new, 7.0, 8.0, 9.0)
    assert pace(new) == 8.0
    assert step_times.seconds_left(named(new), 8.0) == 8.0 * (fresh(new).steps_total - 3)


def test_runs_of_another_recipe_and_runs_that_train_together_say_nothing(launch):
    set_row(took(launch(), 30.0), recipe="sft")
    set_row(took(launch(), 30.0), carried_by="run-1-1")
    assert pace(launch()) is None


def test_more_runs_ask_the_database_no_more(launch):
    def queries(runs) -> int:
        with CaptureQueriesContext(connection) as caught:
            assert len(step_times.step_s(runs)) == len(runs)
        return len(caught)

    took(launch(), 30.0)
    runs = [named(launch()) for _ in range(6)]
    assert queries(runs[:1]) == queries(runs) == 2


def test_a_waiting_run_says_when_its_turn_comes_and_how_long_it_takes(launch, ray, settings):
    settings.MAX_RUNNING_RUNS = 1
    set_row(took(launch(), 60.0), state="finished")
    first, second = launch(name="alpha"), launch()
    for run in (first, second):
        jobs.launch(run.id)
    steps = fresh(second).steps_total
    [waiting] = waiting_reasons.waiting_runs(waiting_reasons.Holders(timezone.now()), Free())
    assert waiting.takes_s == 60.0 * steps and waiting.starts_in_s == 60.0 * fresh(first).steps_total
    assert "“alpha” of Policy from rubrics (about" in waiting.reason
    assert ", and it takes about" in waiting.reason and waiting.reason.endswith(", as earlier runs did")
    set_row(second, time_limit=timedelta(minutes=2))
    [waiting] = waiting_reasons.waiting_runs(waiting_reasons.Holders(timezone.now()), Free())
    assert waiting.takes_s == 120 and waiting.reason.endswith("takes about 2 min at most, because of its time limit")


def test_the_page_has_the_time_until_the_process_says_it(launch, as_researcher):
    took(launch(), 60.0)
    run = launch()
    wanted = f'"expected_s": {60.0 * fresh(run).steps_total}'
    assert wanted in as_researcher.get(f"/runs/{run.pk}").content.decode()
    set_row(run, state="running", eta_s=12.0)
    assert '"expected_s": null' in as_researcher.get(f"/runs/{run.pk}").content.decode()
