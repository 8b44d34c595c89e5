"""Retries: a run that loses its process continues by itself up to a limit, after longer and longer waits. A wrong config is not tried
again.
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.concurrency import concurrently
from webapp.core.problems import Invalid
from webapp.experiments.launch import services as launch_services
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.lifecycle import jobs, retries, schedule, utc_times
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import RETRIES, LogLine
from webapp.experiments.runs import history

from ..conftest import keep_checkpoint
from .test_jobs import ago, fresh, live, set_row  # noqa: F401 - fixtures among them

MINUTE = timedelta(minutes=1)


def lose(run, ray, attempt):  # noqa: F811
    """The process of the run ends without a message while the run is active."""
    ray.jobs.clear()
    set_row(run, state="running", ray_job_id=f"run-{run.id}-{attempt}", heartbeat_at=ago(20), step=3, next_try_at=None)
    jobs.watch()


def test_the_waits_double_up_to_the_longest():
    now = timezone.now()
    waits = [retries.retry_time(losses, now) for losses in range(8)]
    assert waits[0] is None, "one loss says little"
    told = [(at - now).total_seconds() for at in waits[1:]]
    assert told == [30, 60, 120, 240, 480, 900, 900]


def test_each_try_says_when_it_comes_takes_no_place_and_stands_in_the_history(live, run, ray, launch, settings):  # noqa: F811
    settings.MAX_RUNNING_RUNS = 1
    set_row(run, losses=0, retries=3)
    keep_checkpoint(run)
    lose(run, ray, 1)
    assert (fresh(run).attempt, fresh(run).not_before) == (2, None)
    lose(run, ray, 2)
    found, now = fresh(run), timezone.now()
    assert (found.state, found.attempt, found.losses) == ("queued", 3, 2)
    assert timedelta(seconds=25) < found.not_before - now <= timedelta(seconds=30)
    at = utc_times.utc_text(found.not_before, now)
    last = LogLine.objects.filter(run=run, level="warning").order_by("id").last()
    assert f"It continues by itself from its last checkpoint, not before {at} (2 of 3), as attempt 3." in last.message
    other = launch()
    jobs.launch(run.id)
    jobs.launch(other.id)
    assert (fresh(run).state, fresh(other).state) == ("queued", "starting"), "others have its place meanwhile"
    assert fresh(run).state_reason == f"Its process was lost. It tries again at {at} (2 of 3)"
    tries = [event.why for event in history.events(fresh(run))[0] if event.what.startswith("In the line again")]
    assert [why[-8:] for why in tries] == ["(2 of 3)", "(1 of 3)"] and at in tries[0]
    set_row(other, state="finished")
    set_row(run, not_before=ago(1))
    jobs.launch(run.id)
    assert f"run-{run.id}-3" in ray.jobs


@pytest.mark.parametrize("allowed", [0, 1, 4])
def test_it_is_over_with_the_loss_after_its_last_try(live, run, ray, allowed):  # noqa: F811
    set_row(run, losses=0, retries=allowed)
    for attempt in range(1, allowed + 2):
        assert fresh(run).attempt == attempt
        lose(run, ray, attempt)
    assert (fresh(run).state, fresh(run).attempt) == ("failed", allowed + 1)


def test_a_clock_that_was_set_back_by_a_day_does_not_put_the_next_try_off_by_a_day(live, run, ray, team):  # noqa: F811
    set_row(run, state="queued", losses=2, not_before=timezone.now() + timedelta(days=1))
    jobs.watch()
    assert fresh(run).not_before is None
    soon = timezone.now() + timedelta(minutes=14)
    set_row(run, losses=2, not_before=soon)
    jobs.watch()
    assert fresh(run).not_before == soon, "a wait is a wait"
    tonight = timezone.now() + timedelta(hours=9)
    schedule.change(team.researcher, fresh(run), tonight)
    jobs.watch()
    assert fresh(run).not_before == tonight, "somebody wants it then"


def test_what_it_said_itself_is_never_tried_again(live, run, ray):  # noqa: F811
    set_row(run, losses=0, retries=9, step=3)
    live.post(live.event("state", 3, state="failed", reason="objective.clip: must be less than 1"))
    for _ in range(2):
        jobs.watch()
    assert (fresh(run).state, fresh(run).attempt) == ("failed", 1)
    assert fresh(run).state_reason == "objective.clip: must be less than 1"


def test_somebody_who_wants_it_now_need_not_wait(live, run, ray, team):  # noqa: F811
    set_row(run, losses=1, retries=3)
    lose(run, ray, 1)
    assert schedule.change(team.researcher, fresh(run), None).losses == 0
    jobs.launch(run.id)
    assert fresh(run).state == "starting"


def test_stopped_while_it_waits_it_goes_on_at_once_when_it_is_resumed(live, run, ray, team):  # noqa: F811
    set_row(run, losses=1, retries=3)
    lose(run, ray, 1)
    lifecycle.stop(team.researcher, fresh(run))
    assert fresh(run).state == "stopped" and fresh(run).not_before is not None
    resumed = lifecycle.resume(team.researcher, fresh(run))
    assert (resumed.losses, resumed.not_before) == (0, None)


def test_a_time_that_somebody_set_for_a_failed_run_is_kept_when_it_is_resumed(live, run, ray, team):  # noqa: F811
    set_row(run, losses=2, retries=2)
    lose(run, ray, 1)
    moment = timezone.now() + 60 * MINUTE
    schedule.change(team.researcher, fresh(run), moment)
    assert lifecycle.resume(team.researcher, fresh(run)).not_before == moment


@pytest.mark.django_db(transaction=True)
def test_ticks_at_once_retry_once(live, run, ray):  # noqa: F811
    ray.jobs.clear()
    set_row(run, losses=1, retries=5, step=3)
    concurrently([jobs.watch] * 4)
    found = fresh(run)
    assert (found.state, found.attempt, found.losses) == ("queued", 2, 2)
    assert LogLine.objects.filter(run=run, message__contains="begins again by itself").count() == 1


def test_by_the_form(team, version, model, run):
    assert run.retries == RETRIES == 2
    form = RunForm.of_run(team.researcher, run)
    form.retries = "5"
    made = form.launch()
    assert made and made.retries == 5
    assert RunForm.of_run(team.researcher, made).retries == "5", "run again with changes keeps it"
    for wrong in ("-1", "21", "many", "1.5", "9" * 9):
        form = RunForm.of_run(team.researcher, run)
        form.retries = wrong
        assert form.launch() is None, wrong
        assert form.problems == {"retries": "must be a whole number between 0 and 20"}
        assert form.to_fix == [("f-retries", "Retries")] and not form.other_problems


def test_over_the_api_and_of_a_fork(run, version, as_researcher, launch, team):
    body = {"recipe": "policy", "config": {"steps": 4}, "dataset": version.dataset_id}

    def post(url, asked):
        return as_researcher.post(url, asked, content_type="application/json")

    assert post("/api/v1/runs", body).json()["retries"] == 2
    made = post("/api/v1/runs", body | {"retries": 0}).json()
    assert made["retries"] == 0
    assert post(f"/api/v1/runs/{made['id']}/fork", {}).json()["retries"] == 0
    assert post(f"/api/v1/runs/{made['id']}/fork", {"retries": 4}).json()["retries"] == 4
    for wrong in (-1, 21, "many"):
        assert post("/api/v1/runs", body | {"retries": wrong}).status_code == 422
    with pytest.raises(Invalid):
        launch(retries=21)
    with pytest.raises(Invalid):
        launch_services.fork(team.researcher, run, overrides={}, retries=-1)
