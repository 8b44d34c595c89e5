"""Time limits: the time that counts, the runs that end, the launches that are refused. Also over attempts, clocks that are set back, and an
upgrade.
"""

from datetime import timedelta
from importlib import import_module

import pytest
from django.db import connection
from django.utils import timezone

from tests.concurrency import concurrently
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.experiments import serializers
from webapp.experiments.lifecycle import jobs, states, time_limit
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.serializers import under_way

from .test_jobs import ago, fresh, live, set_row  # noqa: F401 - fixtures among them

HOUR = timedelta(hours=1)
ABOUT_100, ABOUT_120 = pytest.approx(100, abs=9), pytest.approx(120, abs=9)  # a busy machine takes its time


def used(run):
    return round(under_way(fresh(run), timezone.now()).total_seconds())


def limit(team, run, hours):
    return time_limit.change(team.researcher, fresh(run), hours and timedelta(hours=hours), timezone.now())


def test_what_it_runs_counts_over_its_attempts_and_what_it_waits_does_not(run, team):
    set_row(run, state_at=ago(9_000), attempt_at=ago(9_000))
    states.move(run, "starting")
    assert (used(run), fresh(run).begun_at) == (0, None)
    states.move(run, "running")
    set_row(run, begun_at=ago(100))
    states.move(run, "blocked", reason="Step 2 waits")
    states.move(run, "running")
    assert used(run) == ABOUT_100
    lifecycle.stop(team.researcher, run)
    states.move(run, "stopped")
    assert (used(run), fresh(run).begun_at) == (ABOUT_100, None)
    lifecycle.resume(team.researcher, run)
    states.move(run, "starting")
    states.move(run, "running")
    set_row(run, begun_at=ago(20))
    assert used(run) == ABOUT_120
    assert lifecycle.go_on(run, "its process was lost") and used(run) == ABOUT_120, "in the line again"


def test_a_clock_that_went_back_takes_nothing_off(run):
    states.move(run, "starting")
    states.move(run, "running")
    set_row(run, under_way=timedelta(seconds=50), begun_at=ago(-500))
    assert used(run) == 50
    states.move(run, "failed")
    assert used(run) == 50


def test_it_stops_and_saves_once_it_is_used_up(live, run, ray, team):  # noqa: F811
    limit(team, run, 1)
    jobs.watch()
    assert fresh(run).state == "running"
    set_row(run, begun_at=ago(3_700))
    for _ in range(2):  # a round may be sent twice
        jobs.watch()
    assert (fresh(run).state, fresh(run).state_reason) == ("stopping", "Its time limit of 1 h is used up")
    entry = AuditEntry.objects.get(action="run.stopping")
    assert (entry.actor, entry.detail["reason"]) == (None, "Its time limit of 1 h is used up")
    assert live.post().json()["command"] == "stop"
    live.post(live.event("state", 3, state="stopped", reason="Stopped after step 3"))
    assert fresh(run).state == "stopped" and ray.stopped == []
    assert fresh(run).state_reason == "Its time limit of 1 h is used up. Stopped after step 3", "the page says why"


@pytest.mark.parametrize(
    ("state", "reason"), [("stopped", "Stopped after step 3"), ("finished", ""), ("failed", "Out of memory")]
)
def test_a_limit_that_passes_later_is_not_named_as_what_stopped_it(live, run, ray, team, state, reason):  # noqa: F811
    limit(team, run, 1)
    lifecycle.stop(team.researcher, fresh(run))
    set_row(run, begun_at=ago(3_700))
    live.post(live.event("state", 3, state=state, reason=reason))
    assert (fresh(run).state, fresh(run).state_reason) == (state, reason)


def test_its_process_expects_no_more_than_the_limit_leaves(run, team):
    limit(team, run, 1)
    set_row(run, begun_at=ago(3_000), eta_s=68_400.0)
    assert 0 < serializers.progress(fresh(run))["eta_s"] <= 600
    set_row(run, time_limit=None)
    assert serializers.progress(fresh(run))["eta_s"] == 68_400


def test_used_up_it_goes_on_only_with_a_new_limit(run, team):
    set_row(run, state="stopped", under_way=HOUR, time_limit=HOUR)
    for act in (
        lambda: lifecycle.resume(team.researcher, fresh(run)),
        lambda: lifecycle.extend(team.researcher, fresh(run), 9),
    ):
        with pytest.raises(Conflict, match="time limit is used up"):
            act()
    limit(team, run, 2)
    assert lifecycle.resume(team.researcher, fresh(run)).state == "queued"


def test_a_limit_that_is_used_already_or_is_none_is_refused(run, team):
    set_row(run, under_way=HOUR)
    for hours, told in ((1, "must be more than the 1.00 h"), (0.001, "between a minute"), (99_999_9, "ten years")):
        with pytest.raises(Invalid) as refused:
            limit(team, run, hours)
        assert told in refused.value.fields["seconds"]
    assert fresh(run).time_limit is None


def test_the_same_limit_twice_is_one_entry_and_lifting_is_another(run, team):
    for hours in (2, 2, None, None):
        limit(team, run, hours)
    seconds = [entry.detail["seconds"] for entry in AuditEntry.objects.filter(action="run.time_limit").order_by("id")]
    assert seconds == [7200.0, None] and fresh(run).time_limit is None


@pytest.mark.django_db(transaction=True)
def test_limits_at_once_leave_the_last_of_the_log(run, team):
    concurrently([lambda hours=hours: limit(team, run, hours) for hours in (1, 2, 3, 4)])
    last = AuditEntry.objects.filter(action="run.time_limit").latest("id")
    assert fresh(run).time_limit.total_seconds() == last.detail["seconds"]


def test_a_logged_run_has_no_limit_and_tells_no_time(run, team, as_researcher):
    set_row(run, recipe="logged", state="running", dataset_version=None, model=None)
    with pytest.raises(Conflict):
        limit(team, run, 1)
    assert as_researcher.get(f"/api/v1/runs/{run.id}").json()["under_way_s"] is None


@pytest.mark.parametrize(("hours", "words"), [(1, "1 h"), (1.5, "1 h 30 min"), (0.25, "15 min")])
def test_limits_are_told_in_hours_and_minutes(hours, words):
    assert time_limit.limit_text(timedelta(hours=hours)) == words


def test_by_the_page_and_the_api(run, as_researcher, as_annotator, as_outsider):
    url = f"/api/v1/runs/{run.id}/limit"
    told = as_researcher.post(url, {"seconds": 7200}, content_type="application/json").json()
    assert (told["time_limit_s"], told["under_way_s"]) == (7200, 0)
    assert as_researcher.post(url, {"seconds": 5}, content_type="application/json").status_code == 422
    assert as_researcher.post(url, {}, content_type="application/json").status_code == 422
    shown = as_researcher.get(f"/runs/{run.id}").content.decode()
    assert "Time limit: 0 s of 2 h 00 min used" in shown
    as_researcher.post(f"/runs/{run.id}/limit", {"hours": "1,5"})
    assert fresh(run).time_limit == timedelta(hours=1.5)
    for wrong in ("nan", "inf", "1e300", "soon", "-1"):
        as_researcher.post(f"/runs/{run.id}/limit", {"hours": wrong})
    assert as_annotator.post(f"/runs/{run.id}/limit", {"hours": "9"}).status_code == 403
    assert as_outsider.post(f"/runs/{run.id}/limit", {"hours": "9"}).status_code == 404
    assert fresh(run).time_limit == timedelta(hours=1.5)
    as_researcher.post(f"/runs/{run.id}/limit", {"hours": ""})
    assert fresh(run).time_limit is None
    assert "Time limit changed" in as_researcher.get(f"/runs/{run.id}/history").content.decode()


def test_an_upgrade_counts_what_the_log_says(run, launch, team, monkeypatch):
    """A run with two attempts before the upgrade, and a run that is active while the upgrade is made."""
    at = timezone.now() - HOUR
    told = [
        ("launch", 0),
        ("starting", 5),
        ("running", 10),
        ("paused", 30),
        ("running", 40),
        ("stopping", 60),
        ("stopped", 70),
    ]
    told += [("queued", 500), ("starting", 510), ("running", 520)]
    other = launch()
    for action, seconds in told:
        for each in (run, other):
            with monkeypatch.context() as earlier:
                earlier.setattr("django.utils.timezone.now", lambda seconds=seconds: at + timedelta(seconds=seconds))
                AuditEntry.objects.create(
                    workspace=team.workspace, action=f"run.{action}", object_type="run", object_id=each.pk
                )
    set_row(run, state="running", state_at=at + timedelta(seconds=520))
    set_row(other, recipe="logged", state="running", dataset_version=None, model=None)
    migration = import_module("webapp.experiments.migrations.0027_time_limits")
    with connection.cursor() as cursor:
        cursor.execute(migration.LASTED)
        cursor.execute(migration.BEGUN)
    assert (fresh(run).under_way, fresh(run).begun_at) == (timedelta(seconds=60), at + timedelta(seconds=520))
    assert (fresh(other).under_way, fresh(other).begun_at) == (timedelta(), None)
