"""The order of the line: turns of workspaces, priorities. Its page and the reasons say who has which place, and until when."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.concurrency import concurrently
from tests.webapp.experiments.conftest import ray as ray_server  # noqa: F401 - a fixture
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.experiments import serializers
from webapp.experiments.lifecycle import estimates, jobs, line_page, together, waiting_line, waiting_reasons
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle.line_order import Free
from webapp.experiments.models import Experiment, Run

from .test_jobs import fresh
from .test_waiting_line import ray, retried_runs  # noqa: F401 - fixtures

HIGH, NORMAL, LOW = Run.Priority.HIGH, Run.Priority.NORMAL, Run.Priority.LOW


@pytest.fixture(autouse=True)
def one_place(settings):
    settings.MAX_RUNNING_RUNS = 1


@pytest.fixture
def theirs(team):
    return Experiment.objects.create(workspace=team.outsider.workspace, name="Theirs")


def order():
    return [each.run.id for each in waiting_reasons.waiting_runs(waiting_reasons.Holders(timezone.now()), Free())]


def says(run, eta_s, **fields):
    """The run's process is active, and has just reported how long it will take."""
    Run.objects.filter(id=run.id).update(state="running", eta_s=eta_s, heartbeat_at=timezone.now(), **fields)


def test_whoever_runs_least_comes_first_however_many_others_wait(launch, theirs):
    ours = [launch() for _ in range(5)]
    says(ours[0], None)
    late = [launch() for _ in range(2)]
    Run.objects.filter(id__in=[run.id for run in late]).update(experiment=theirs)
    assert order() == [late[0].id, *(run.id for run in (ours[1], late[1], *ours[2:]))]


def test_priority_goes_before_the_time_of_asking_and_only_within_a_workspace(launch, team, theirs):
    first, second, third, other = (launch() for _ in range(4))
    Run.objects.filter(id=other.id).update(experiment=theirs, priority=LOW)
    lifecycle.prioritise(team.researcher, third, HIGH)
    lifecycle.prioritise(team.researcher, first, LOW)
    assert order()[0] == third.id, "asked for before the other workspace's"
    assert order() == [third.id, other.id, second.id, first.id]


def test_a_higher_priority_takes_the_next_place_and_interrupts_nobody(
    launch,
    ray,  # noqa: F811
    retried_runs,  # noqa: F811
    team,
    django_capture_on_commit_callbacks,
):
    first, second, third = launch(), launch(), launch()
    for run in (first, second, third):
        jobs.launch(run.id)
    with django_capture_on_commit_callbacks(execute=True):
        lifecycle.prioritise(team.researcher, fresh(third), HIGH)
    assert fresh(first).state == "starting"
    assert "1 more is before it" in fresh(second).state_reason and "before it" not in fresh(third).state_reason
    Run.objects.filter(id=first.id).update(state="finished")
    waiting_line.let_in()
    assert retried_runs == [third.id]


def test_the_same_priority_twice_is_one_entry_of_the_log(run, team):
    for _ in range(2):
        lifecycle.prioritise(team.researcher, run, HIGH)
    entry = AuditEntry.objects.get(action="run.priority")
    assert (entry.actor, entry.detail) == (team.researcher.user, {"priority": "high"})


@pytest.mark.django_db(transaction=True)
def test_clicks_at_once_leave_one_of_the_priorities_and_an_entry_for_each_change(run, team, retried_runs):  # noqa: F811
    concurrently([lambda p=p: lifecycle.prioritise(team.researcher, fresh(run), p) for p in (HIGH, LOW, HIGH, LOW)])
    last = AuditEntry.objects.filter(action="run.priority").latest("id")
    assert fresh(run).get_priority_display().lower() == last.detail["priority"]


def test_a_run_that_another_program_logs_waits_for_nothing(run, team):
    Run.objects.filter(id=run.id).update(recipe="logged", state="running")
    with pytest.raises(Conflict):
        lifecycle.prioritise(team.researcher, fresh(run), HIGH)


def test_a_reason_says_for_about_how_long(launch):
    first, second, third = launch(name="alpha"), launch(), launch()
    says(first, 380)
    Run.objects.filter(state="queued").update(next_try_at=None)
    waiting_line.update_waiting_reasons()
    told = "Waits for “alpha” of Policy from rubrics (about 6 min left): 1 may run at once (MAX_RUNNING_RUNS)"
    assert fresh(second).state_reason == f"{told}. Its turn comes in about 6 min"
    assert "turn comes" not in fresh(third).state_reason, "how long the second takes nobody knows"


def test_a_run_takes_no_longer_than_its_time_limit_lets_it(launch):
    first, second = launch(name="alpha"), launch()
    says(first, 20 * 3600)
    begun = timezone.now() - timedelta(minutes=4)
    Run.objects.filter(pk=first.pk).update(time_limit=timedelta(minutes=10), begun_at=begun)
    Run.objects.filter(pk=second.pk).update(next_try_at=None, time_limit=timedelta(minutes=10))
    waiting_line.update_waiting_reasons()
    assert "“alpha” of Policy from rubrics (about 6 min left)" in fresh(second).state_reason
    assert "Its turn comes in about 6 min" in fresh(second).state_reason
    now = timezone.now()
    assert (
        serializers.within_limit(fresh(second), 7200.0, now) == 600.0
        and serializers.within_limit(fresh(second), 30.0, now) == 30.0
    )
    assert serializers.within_limit(fresh(second), None, now) is None, "what is not known stays so"


def test_a_place_of_runs_that_train_together_is_free_when_the_last_of_them_is_over(launch):
    limited, guest, waiting = launch(name="alpha"), launch(), launch()
    for run in (limited, guest):
        says(run, 3 * 3600, carried_by=together.own_job(limited))
    begun = timezone.now() - timedelta(minutes=4)
    Run.objects.filter(pk=limited.pk).update(time_limit=timedelta(minutes=10), begun_at=begun)
    Run.objects.filter(pk=waiting.pk).update(next_try_at=None)
    waiting_line.update_waiting_reasons()
    assert "“alpha” of Policy from rubrics (about 3 hours left)" in fresh(waiting).state_reason
    Run.objects.filter(pk=guest.pk).update(time_limit=timedelta(minutes=14), begun_at=begun)
    waiting_line.update_waiting_reasons()
    assert "(about 10 min left)" in fresh(waiting).state_reason
    Run.objects.filter(pk=guest.pk).update(eta_s=None)
    waiting_line.update_waiting_reasons()
    assert "left)" not in fresh(waiting).state_reason, "nobody knows how long the guest takes"


def test_what_stands_still_or_has_said_nothing_has_no_time(launch):
    run = launch()
    now = timezone.now()
    for state, eta_s, heartbeat_at in (
        ("blocked", 60.0, now),
        ("starting", None, None),
        ("running", None, now),
        ("running", 60.0, None),
    ):
        Run.objects.filter(id=run.id).update(state=state, eta_s=eta_s, heartbeat_at=heartbeat_at)
        assert estimates.seconds_left(fresh(run), now) is None
    says(run, 60.0)
    assert estimates.seconds_left(fresh(run), timezone.now() + timedelta(hours=1)) == 0
    assert estimates.seconds_left(fresh(run), timezone.now() - timedelta(hours=1)) == 60, "a clock that was set back"


def test_places_come_free_one_after_the_other_and_what_is_unknown_is_not_guessed():
    assert estimates.until(0, []) == 0
    assert estimates.until(2, [(90.0, 1), (None, 4), (30.0, 1)]) == 90
    assert estimates.until(3, [(90.0, 1), (None, 4), (30.0, 1)]) is None
    assert estimates.until(3, [(90.0, 1), (30.0, 4)]) == 30


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (5, "a minute"),
        (130, "2 min"),
        (1000, "15 min"),
        (3500, "an hour"),
        (3 * 3600, "3 hours"),
        (4 * 86400, "4 days"),
    ],
)
def test_times_are_told_in_coarse_steps(seconds, words):
    assert estimates.about(seconds) == f"about {words}"


def test_the_line_of_a_workspace_names_no_run_of_another(launch, team, theirs, as_researcher):
    first, second, _ = launch(name="secret plan"), launch(name="secret too"), launch(name="ours")
    Run.objects.filter(id__in=[first.id, second.id]).update(experiment=theirs)
    says(first, 100.0)
    found = as_researcher.get("/api/v1/runs/line").json()
    assert [row["name"] for row in found["running"] + found["waiting"]] == [None, "ours", None]
    assert 0 < found["running"][0]["seconds"] <= 100
    assert (found["places"], found["more"], found["waiting"][1]["why"]) == (1, 0, "")
    shown = as_researcher.get("/experiments/line").content.decode()
    assert "secret" not in shown and "a run of another workspace" in shown and "ours" in shown
    assert [row.run for row in line_page.whole(team.outsider.workspace_id).waiting] == [None, second]


def test_an_empty_line_promises_no_place_where_all_are_taken(launch, as_researcher, settings):
    settings.MAX_RUNNING_RUNS = 1
    waits = "A run or job that is launched now waits until a place is free"
    assert waits not in as_researcher.get("/experiments/line").content.decode()
    says(launch(), 100.0)
    shown = as_researcher.get("/experiments/line").content.decode()
    assert "Nothing waits." in shown and waits in shown


def test_the_line_says_how_many_wait_behind_those_it_shows(launch, monkeypatch, team):
    monkeypatch.setattr(waiting_reasons.waiting_runs, "__defaults__", (2,))
    for _ in range(5):
        launch()
    line = line_page.whole(team.workspace.id)
    assert (len(line.waiting), line.more) == (2, 3)


def test_priority_over_the_api_and_by_the_buttons(run, as_researcher, as_annotator, as_outsider):
    url = f"/api/v1/runs/{run.id}/priority"
    assert as_researcher.post(url, {"priority": "high"}, content_type="application/json").status_code == 200
    assert fresh(run).priority == HIGH
    assert as_researcher.post(url, {"priority": "urgent"}, content_type="application/json").status_code == 422
    back = as_researcher.post(f"/runs/{run.id}/priority", {"priority": "normal", "from": "line"})
    assert (back["Location"], fresh(run).priority) == ("/experiments/line", NORMAL)
    as_researcher.post(f"/runs/{run.id}/priority", {"priority": "urgent"})
    assert as_annotator.post(f"/runs/{run.id}/priority", {"priority": "low"}).status_code == 403
    assert as_outsider.post(f"/runs/{run.id}/priority", {"priority": "low"}).status_code == 404
    assert fresh(run).priority == NORMAL
