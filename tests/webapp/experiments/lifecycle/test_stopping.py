"""Stopping saves: a run has as much time as its steps take, unless a person ends it immediately."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.concurrency import concurrently
from webapp.core.models import AuditEntry
from webapp.experiments.lifecycle import jobs, stopping
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import LogLine, MetricPoint, Run

from ..conftest import keep_checkpoint
from .test_jobs import ago, fresh, live, set_row, watch_for  # noqa: F401 - fixtures among them

MINUTES = 60


def took(run, *seconds):
    """The steps of the run so far, and the duration of each."""
    now = timezone.now()
    points = [MetricPoint(run=run, key="perf/step_s", step=i, value=s, time=now) for i, s in enumerate(seconds, 1)]
    MetricPoint.objects.bulk_create(points)
    set_row(run, step=len(seconds))


@pytest.mark.parametrize(
    ("phase", "steps", "minutes"),
    [
        ("loading", [], 2),
        ("", [], 2),
        ("update", [], 15),  # in its first step, nobody knows the duration
        ("update", [4.0], 2.1),
        ("update", [600.0, 1.0], 17),
        ("update", [600.0] + [20.0] * 20, 2.5),  # a long time ago
        ("update", [5 * 3600.0], 120),
    ],
)
def test_it_has_as_long_as_its_recent_steps_took(run, phase, steps, minutes):
    set_row(run, phase=phase)
    took(run, *steps)
    assert stopping.time_to_stop(fresh(run)) == timedelta(minutes=minutes)


def test_a_long_step_has_its_time_and_its_checkpoint_is_kept(live, run, ray, team):  # noqa: F811
    took(run, 6.0 * MINUTES)
    set_row(run, phase="update")
    told = lifecycle.stop(team.researcher, fresh(run)).state_reason
    assert told == "Rosa asked it to stop. It saves and gives up its present step, which may be about 6 min of work"
    set_row(run, state_at=ago(10 * MINUTES))
    live.post()
    watch_for(1_000)
    assert (fresh(run).state, ray.stopped) == ("stopping", [])
    live.post(live.event("state", 2, state="stopped", reason="Stopped after step 2"))
    assert (fresh(run).state, fresh(run).state_reason) == ("stopped", "Stopped after step 2")


def test_one_that_takes_longer_than_its_steps_ever_did_is_killed(live, run, ray, team):  # noqa: F811
    took(run, 6.0 * MINUTES)
    keep_checkpoint(run)
    lifecycle.stop(team.researcher, fresh(run))
    set_row(run, state_at=ago(12 * MINUTES))
    live.post()
    watch_for(1_000)
    assert fresh(run).state == "stopped"
    assert fresh(run).state_reason == "It did not stop by itself and was killed; its last checkpoint remains"
    assert ray.stopped == [f"run-{run.id}-1"]


def test_one_that_says_nothing_while_it_finishes_is_given_up_as_any_other(live, run, ray, team):  # noqa: F811
    took(run, 60.0 * MINUTES)
    lifecycle.stop(team.researcher, fresh(run))
    set_row(run, state_at=ago(6 * MINUTES), heartbeat_at=ago(6 * MINUTES))
    watch_for(1_000)
    assert fresh(run).state == "stopped" and "No sign of life" in fresh(run).state_reason


def test_at_once_it_does_not_wait_for_its_step(live, run, ray, team):  # noqa: F811
    took(run, 6.0 * MINUTES)
    for _ in range(2):
        assert lifecycle.stop_now(team.researcher, fresh(run)).state == "stopping"
    assert fresh(run).state_reason == "Rosa asked it to stop at once"
    assert AuditEntry.objects.filter(action="run.stop_now").count() == 1
    for _ in range(2):  # the task may be sent twice
        jobs.stop(run.id)
    assert ray.stopped == [f"run-{run.id}-1"]
    assert fresh(run).state == "stopped"
    assert fresh(run).state_reason == "It was ended before it had saved; it had made no checkpoint"
    assert LogLine.objects.filter(run=run, level="error").exists()


@pytest.mark.parametrize("has_saved", [True, False])
def test_a_fork_that_saved_nothing_can_continue_from_where_it_began(live, run, ray, team, has_saved):  # noqa: F811
    took(run, 6.0 * MINUTES)
    set_row(run, start_step=2)
    keep_checkpoint(run, 2)  # adopted
    if has_saved:
        keep_checkpoint(run, 4)
    lifecycle.stop_now(team.researcher, fresh(run))
    jobs.stop(run.id)
    own = "its last checkpoint remains"
    began = "it had made no checkpoint, and can continue from that with which it began"
    assert fresh(run).state_reason == f"It was ended before it had saved; {own if has_saved else began}"


def test_upkeep_ends_it_where_the_task_was_lost(live, run, ray, team):  # noqa: F811
    lifecycle.stop_now(team.researcher, fresh(run))
    live.post()
    jobs.watch()
    assert fresh(run).state == "stopped"


def test_resumed_it_has_its_time_again(live, run, ray, team):  # noqa: F811
    lifecycle.stop_now(team.researcher, fresh(run))
    jobs.stop(run.id)
    lifecycle.resume(team.researcher, fresh(run))
    assert (fresh(run).state, fresh(run).stop_by) == ("queued", None)


def test_of_a_run_that_waits_or_is_over_nothing_is_left_to_end(run, team):
    assert lifecycle.stop_now(team.researcher, run).state == "stopped"
    assert lifecycle.stop_now(team.researcher, run).state == "stopped"
    assert fresh(run).stop_by is None
    assert not AuditEntry.objects.filter(action="run.stop_now").exists()


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_stop_it_and_stop_it_now(live, run, ray, team):  # noqa: F811
    concurrently(
        [
            lambda: lifecycle.stop(team.researcher, fresh(run)),
            lambda: lifecycle.stop_now(team.owner, fresh(run)),
            lambda: lifecycle.stop_now(team.researcher, fresh(run)),
        ]
    )
    jobs.stop(run.id)
    assert fresh(run).state == "stopped" and ray.stopped == [f"run-{run.id}-1"]
    assert AuditEntry.objects.filter(action="run.stop_now").count() == 1
    assert AuditEntry.objects.filter(action="run.stopping").count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_stops_it_at_once_and_another_resumes_at_the_same_moment(live, run, ray, team):  # noqa: F811
    lifecycle.stop_now(team.researcher, fresh(run))
    jobs.stop(run.id)
    concurrently(
        [
            lambda: lifecycle.resume(team.owner, fresh(run)),
            lambda: lifecycle.stop_now(team.researcher, fresh(run)),
        ]
    )
    found = Run.objects.get(id=run.id)
    assert (found.state, found.attempt, found.stop_by) in (("queued", 2, None), ("stopped", 2, None))


def test_by_the_page_and_the_api(live, run, ray, as_researcher, as_annotator, eager):  # noqa: F811
    url = f"/api/v1/runs/{run.id}/stop"
    assert as_researcher.post(f"{url}?now=perhaps").status_code == 422
    assert as_annotator.post(f"{url}?now=true").status_code == 403
    as_researcher.post(url)
    assert fresh(run).state == "stopping"
    shown = as_researcher.get(f"/runs/{run.id}").content.decode()
    assert "Stop run 1 at once?" in shown
    as_researcher.post(f"/runs/{run.id}/stop", {"now": "1"})
    assert fresh(run).stop_by is not None
