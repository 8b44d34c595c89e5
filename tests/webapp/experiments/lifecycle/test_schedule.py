"""Start not before: a run that waits for a time takes no place, makes nobody wait, and is let in when the time has come."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from tests.concurrency import concurrently
from tests.webapp.experiments.conftest import ray as ray_server  # noqa: F401 - a fixture
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.lifecycle import jobs, line_page, schedule, utc_times, waiting_line
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Run
from webapp.experiments.runs import history

from .test_jobs import fresh, set_row
from .test_waiting_line import ray, retried_runs  # noqa: F401 - fixtures

HOUR = timedelta(hours=1)
EVENING = datetime(2026, 11, 28, 22, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def one_place(settings):
    settings.MAX_RUNNING_RUNS = 1


def later(hours=1.0):
    return timezone.now() + timedelta(hours=hours)


def change(team, run, moment):
    return schedule.change(team.researcher, fresh(run), moment)


def test_until_then_it_says_so_takes_no_place_and_others_pass_it(launch, ray, settings):  # noqa: F811
    moment = later()
    first, second = launch(not_before=moment), launch()
    jobs.launch(first.id)
    assert (fresh(first).state, fresh(first).state_reason) == (
        "queued",
        f"Waits until {utc_times.utc_text(moment, timezone.now())}",
    )
    jobs.launch(second.id)
    assert fresh(second).state == "starting"
    settings.MAX_RUNNING_RUNS = 2
    jobs.launch(first.id)
    assert fresh(first).state == "queued", "though a place is free"


def test_those_that_wait_for_a_time_stand_last_the_next_one_first(launch, ray, team):  # noqa: F811
    night, evening, now = launch(not_before=later(8)), launch(not_before=later(2)), launch()
    rows = line_page.whole(team.workspace.pk).waiting
    assert [row.run.id for row in rows] == [now.id, evening.id, night.id]
    assert rows[1].why.startswith("Waits until ") and 7100 < rows[1].seconds <= 7200


def test_it_is_let_in_once_its_time_has_come_though_upkeep_was_down(launch, ray, retried_runs):  # noqa: F811
    run = launch(not_before=later())
    jobs.launch(run.id)
    jobs.watch()
    assert retried_runs == [] and fresh(run).next_try_at is None
    set_row(run, not_before=timezone.now() - 5 * HOUR)  # no upkeep ran for five hours
    jobs.watch()
    assert retried_runs == [run.id]
    jobs.launch(run.id)
    assert fresh(run).state == "starting"


def test_its_time_come_it_stands_where_it_was_asked_for(launch, ray, retried_runs):  # noqa: F811
    holder, early, late = launch(), launch(not_before=later()), launch()
    for run in (holder, early, late):
        jobs.launch(run.id)
    assert ", and" not in fresh(late).state_reason, "nobody is before it"
    set_row(early, not_before=timezone.now() - HOUR)
    waiting_line.let_in()
    assert "1 more is before it" in fresh(late).state_reason
    set_row(holder, state="finished")
    waiting_line.let_in()
    assert retried_runs == [early.id]


def test_another_time_and_none(launch, ray, retried_runs, team, django_capture_on_commit_callbacks):  # noqa: F811
    run = launch()
    moment = later()
    change(team, run, moment)
    jobs.launch(run.id)
    assert fresh(run).state == "queued"
    with django_capture_on_commit_callbacks(execute=True):
        assert change(team, run, None).not_before is None
    assert retried_runs == [run.id]
    for _ in range(2):
        change(team, run, None)
    told = [entry.detail["not_before"] for entry in AuditEntry.objects.filter(action="run.not_before").order_by("id")]
    assert told == [moment.isoformat(), None], "the same twice is one entry"
    whys = [event.why for event in history.events(fresh(run))[0] if event.what == "Time to start changed"]
    assert whys == ["lifted", f"not before {utc_times.utc_text(moment, timezone.now())}"]


@pytest.mark.parametrize("hours", [-0.1, -9_000, 24 * 400])
def test_a_time_that_has_passed_or_is_far_away_is_refused(launch, run, team, hours):
    for act in (lambda: launch(not_before=later(hours)), lambda: change(team, run, later(hours))):
        with pytest.raises(Invalid) as refused:
            act()
        assert refused.value.fields["not_before"].split(":")[0] in ("has passed", "must be within a year")
    assert Run.objects.count() == 1 and fresh(run).not_before is None


def test_what_has_started_is_not_put_off_and_what_is_paused_waits_when_it_is_resumed(run, ray, team):  # noqa: F811
    jobs.launch(run.id)
    with pytest.raises(Conflict, match="it has started"):
        change(team, run, later())
    set_row(run, state="paused", ray_job_id="", next_try_at=None)
    change(team, run, later())
    assert fresh(run).state == "paused"
    lifecycle.resume(team.researcher, fresh(run))
    ray.jobs[f"run-{run.id}-1"].update(status="SUCCEEDED")
    jobs.launch(run.id)
    assert fresh(run).state == "queued" and fresh(run).state_reason.startswith("Waits until")


def test_a_logged_run_has_no_time_to_start(run, team):
    set_row(run, recipe="logged", state="stopped", dataset_version=None, model=None)
    with pytest.raises(Conflict):
        change(team, run, later())


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_leave_the_last_of_the_log(run, team, retried_runs):  # noqa: F811
    times = [later(hours) for hours in (1, 2, 3)] + [None]
    concurrently([lambda moment=moment: change(team, run, moment) for moment in times])
    last = AuditEntry.objects.filter(action="run.not_before").latest("id").detail["not_before"]
    kept = fresh(run).not_before
    assert (kept and kept.isoformat()) == last


@pytest.mark.django_db(transaction=True)
def test_it_is_put_off_or_started_and_never_both(run, ray, team, retried_runs):  # noqa: F811
    def put_off():
        try:
            change(team, run, later())
        except Conflict:
            return

    concurrently([put_off, lambda: jobs.launch(run.id)])
    found = fresh(run)
    assert (found.state, found.not_before is None) in (("starting", True), ("queued", False))


def test_the_same_launch_asked_for_again_after_its_time_is_the_same_run(launch, monkeypatch):
    moment = later()
    first = launch(key="one", not_before=moment)
    monkeypatch.setattr(timezone, "now", lambda: moment + HOUR)
    assert launch(key="one", not_before=moment).id == first.id


def test_by_the_form(team, version, model, run):
    form = RunForm.of_run(team.researcher, run)
    form.not_before = utc_times.field(later(3))
    made = form.launch()
    assert made and utc_times.field(made.not_before) == form.not_before
    for text, told in (("2020-01-01T10:00", "has passed"), ("soon", "is not a date and time")):
        form = RunForm.of_run(team.researcher, run)
        form.not_before = text
        assert form.launch() is None
        assert form.problems["not_before"].startswith(told)
        assert form.to_fix == [("f-not_before", "Start not before")] and not form.other_problems


def test_by_the_page_and_the_api(run, as_researcher, as_annotator, as_outsider):
    url, page = f"/api/v1/runs/{run.id}/schedule", f"/runs/{run.id}/schedule"
    moment = later().replace(microsecond=0)
    told = as_researcher.post(url, {"not_before": moment.isoformat()}, content_type="application/json").json()
    assert datetime.fromisoformat(told["not_before"]) == moment
    for wrong in ("2020-01-01T00:00:00Z", "2026-11-28T22:00:00", "0001-01-01T00:00:00+14:00", "soon", 5e300):
        answer = as_researcher.post(url, {"not_before": wrong}, content_type="application/json")
        assert answer.status_code == 422, wrong
    assert as_researcher.post(url, {}, content_type="application/json").status_code == 422
    assert f'value="{utc_times.field(moment)}"' in as_researcher.get(f"/runs/{run.id}").content.decode()
    as_researcher.post(page, {"not_before": utc_times.field(moment + HOUR)})
    assert utc_times.field(fresh(run).not_before) == utc_times.field(moment + HOUR)
    for wrong in ("0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "2020-01-01T00:00", "soon", "\0", "1" * 9999):
        assert as_researcher.post(page, {"not_before": wrong}).status_code == 302, wrong
    assert as_annotator.post(page, {"not_before": ""}).status_code == 403
    assert as_outsider.post(page, {"not_before": ""}).status_code == 404
    assert utc_times.field(fresh(run).not_before) == utc_times.field(moment + HOUR)
    as_researcher.post(page, {"not_before": ""})
    assert fresh(run).not_before is None


def test_launched_and_forked_over_the_api(run, version, as_researcher):
    moment = later().replace(microsecond=0)
    at = moment.isoformat()
    body = {"recipe": "policy", "config": {"steps": 4}, "dataset": version.dataset_id, "not_before": at}
    for url, asked in (("/api/v1/runs", body), (f"/api/v1/runs/{run.id}/fork", {"not_before": at})):
        answer = as_researcher.post(url, asked, content_type="application/json")
        assert answer.status_code == 201 and datetime.fromisoformat(answer.json()["not_before"]) == moment
        refused = as_researcher.post(
            url, asked | {"not_before": "2020-01-01T00:00:00Z"}, content_type="application/json"
        )
        assert refused.status_code == 422 and "has passed" in refused.content.decode()


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (EVENING, "22:00 UTC"),
        (EVENING + 11 * HOUR, "29 Nov, 09:00 UTC"),
        (EVENING.replace(year=2027), "28 Nov 2027, 22:00 UTC"),
    ],
)
def test_moments_in_words(moment, told):
    assert utc_times.utc_text(moment, EVENING - HOUR) == told
