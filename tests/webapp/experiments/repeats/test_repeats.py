"""Repeated runs: launched once for each time, in somebody's name, one after the other, and never in a heap."""

from contextlib import suppress
from datetime import UTC, datetime, time, timedelta

import pytest
from django.db import IntegrityError, transaction
from django.http import Http404
from django.utils import timezone

from tests.concurrency import concurrently
from tests.team import browser
from tests.webapp.webhooks.hooks import announced_events, listen
from webapp.accounts.administration.closing import close
from webapp.accounts.models import Membership, Role
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.datasets.models import DatasetVersion, VersionMember
from webapp.experiments.lifecycle.limits import RunLimits
from webapp.experiments.models import RepeatTime, Run, RunRepeat
from webapp.experiments.repeats import queries, rounds, services
from webapp.experiments.repeats.rhythm import Rhythm
from webapp.experiments.runs import history

from ..conftest import swap_names
from ..lifecycle.test_jobs import fresh, set_row

HOUR = timedelta(hours=1)
HOURLY = services.RepeatAsked(Rhythm(every_hours=1))


@pytest.fixture
def repeat(run, team):
    """A finished run that is launched again every hour."""
    set_row(run, state="finished")
    return services.add(team.researcher, run, HOURLY)


def due(row, ago=timedelta()):
    """Its next time came so long ago."""
    moment = timezone.now() - ago
    RunRepeat.objects.filter(pk=row.pk).update(next_at=moment)
    return moment


def times(row):
    return list(RepeatTime.objects.filter(repeat=row).order_by("due"))


def launched(row):
    return Run.objects.filter(repeated_by__repeat=row)


def test_a_run_is_launched_at_its_time_with_config_limits_and_retries_of_the_first(run, repeat, team):
    set_row(run, time_limit=2 * HOUR, retries=5, name="nightly")
    rounds.watch()
    assert times(repeat) == [], "its time has not come"
    moment = due(repeat)
    rounds.watch()
    [time_] = times(repeat)
    assert (time_.due, time_.outcome, time_.missed) == (moment, "launched", 0)
    new = Run.objects.get(pk=time_.run_id)
    assert (new.state, new.config, new.dataset_version_id, new.model_id) == (
        "queued",
        run.config,
        run.dataset_version_id,
        run.model_id,
    )
    assert (RunLimits.of_run(new).seconds, new.retries, new.forked_from_id) == (7200, 5, run.pk)
    assert new.created_by == team.researcher.user and new.name == f"nightly {moment:%Y-%m-%d %H:%M}"
    repeat.refresh_from_db()
    assert repeat.next_at == moment + HOUR
    rounds.watch()
    assert len(times(repeat)) == 1


@pytest.mark.django_db(transaction=True)
def test_two_beats_at_once_launch_one_run(repeat):
    due(repeat)
    concurrently([rounds.watch] * 4)
    assert [each.outcome for each in times(repeat)] == ["launched"] and launched(repeat).count() == 1


def test_the_database_takes_a_time_once(repeat):
    moment = due(repeat)
    RepeatTime.objects.create(repeat=repeat, due=moment, outcome="launched")
    with pytest.raises(IntegrityError), transaction.atomic():
        RepeatTime.objects.create(repeat=repeat, due=moment, outcome="launched")


def test_a_time_that_comes_again_because_the_clock_was_set_back_is_left_alone_and_the_next_one_follows(repeat):
    moment = due(repeat)
    RepeatTime.objects.create(repeat=repeat, due=moment, outcome="launched")
    rounds.watch()
    assert not launched(repeat).exists() and len(times(repeat)) == 1
    repeat.refresh_from_db()
    assert repeat.next_at == moment + HOUR, "before, this repeat failed in every round and never launched again"


def test_a_repeat_keeps_the_rows_of_its_newest_times(repeat, monkeypatch):
    monkeypatch.setattr(rounds, "KEPT", 3)
    due(repeat, 9 * HOUR)
    rounds.watch()
    [first] = launched(repeat)
    set_row(first, state="running")
    for hours in range(8, 2, -1):
        due(repeat, hours * HOUR)
        rounds.watch()
    assert [each.outcome for each in times(repeat)] == ["launched", *["left_out"] * 3], "its run is not over"
    assert launched(repeat).count() == 1
    set_row(first, state="finished")
    due(repeat, 2 * HOUR)
    rounds.watch()
    assert [each.outcome for each in times(repeat)] == ["left_out", "left_out", "launched"]
    assert fresh(first).state == "finished", "the run stays"


def test_after_a_long_pause_of_the_workers_one_run_is_launched_and_the_rest_is_told(repeat, as_researcher):
    moment = due(repeat, timedelta(hours=5, minutes=30))
    rounds.watch()
    [time_] = times(repeat)
    assert (time_.due, time_.missed, launched(repeat).count()) == (moment + 5 * HOUR, 5, 1)
    repeat.refresh_from_db()
    assert repeat.next_at == moment + 6 * HOUR > timezone.now()
    shown = " ".join(as_researcher.get("/experiments/repeats").content.decode().split())
    assert "5 earlier times missed, because nothing ran here" in shown


@pytest.mark.parametrize("state", ["queued", "running", "paused", "blocked"])
def test_while_its_last_run_is_not_over_the_next_time_is_left_out(repeat, state):
    due(repeat, HOUR)
    rounds.watch()
    launched(repeat).update(state=state)
    moment = due(repeat)
    rounds.watch()
    assert [each.outcome for each in times(repeat)] == ["launched", "left_out"]
    assert times(repeat)[1].reason == f"{launched(repeat).get()} is not over"
    launched(repeat).update(state="failed")
    RunRepeat.objects.update(next_at=moment + timedelta(milliseconds=1))
    rounds.watch()
    assert [each.outcome for each in times(repeat)] == ["launched", "left_out", "launched"]


@pytest.mark.parametrize("gone", ["member", "role", "account", "closed"])
def test_a_person_who_may_not_launch_any_more_launches_nothing_and_it_pauses(repeat, team, gone):
    if gone == "member":
        Membership.objects.filter(pk=team.researcher.pk).delete()
    elif gone == "role":
        Membership.objects.filter(pk=team.researcher.pk).update(role=Role.REVIEWER)
    elif gone == "closed":
        close(team.researcher.user, by="the directory")
    else:
        RunRepeat.objects.update(created_by=None)
    due(repeat)
    rounds.watch()
    assert [(each.outcome, each.reason) for each in times(repeat)] == [("refused", rounds.GONE)]
    repeat.refresh_from_db()
    assert repeat.paused and not launched(repeat).exists()
    [entry] = AuditEntry.objects.filter(action="run.repeat_refused")
    assert entry.actor is None and entry.detail["reason"] == rounds.GONE


def test_a_launch_that_is_refused_says_why_leaves_nothing_behind_and_the_next_time_comes(run, repeat, team):
    before = Run.objects.count()
    set_row(run, config=run.config | {"steps": -1})
    listen(team.owner)
    moment = due(repeat)
    rounds.watch()
    [time_] = times(repeat)
    assert time_.outcome == "refused" and "steps" in time_.reason and Run.objects.count() == before
    repeat.refresh_from_db()
    assert (repeat.next_at, repeat.paused) == (moment + HOUR, False)
    due(repeat)
    rounds.watch()
    assert [each.outcome for each in times(repeat)] == ["refused"] * 2
    [(event, facts)] = announced_events()
    assert (event, facts["run"], facts["repeat"], facts["reason"]) == (
        "run.repeat_refused",
        run.pk,
        repeat.pk,
        time_.reason,
    ), "once, until it is launched again"


def test_each_run_trains_on_the_newest_version_if_asked(run, team):
    set_row(run, state="finished")
    asked = services.RepeatAsked(Rhythm(every_hours=1), newest_data=True)
    rows = [services.add(team.researcher, run, each) for each in (HOURLY, asked)]
    second = DatasetVersion.objects.create(dataset=run.data.dataset, number=2, state="frozen", digest="e" * 64)
    for each in run.data.members.all():
        VersionMember.objects.create(version=second, example=each.example, position=each.position)
    for row in rows:
        due(row)
    rounds.watch()
    assert [launched(row).get().data.number for row in rows] == [1, 2]


def test_it_ends_at_its_end(run, team):
    now = timezone.now()
    asked = services.RepeatAsked(Rhythm(every_hours=1), ends_at=now + 2.5 * HOUR)
    row = services.add(team.researcher, run, asked)
    RunRepeat.objects.update(ends_at=now + timedelta(minutes=30))
    set_row(run, state="finished")
    due(row)
    rounds.watch()
    row.refresh_from_db()
    assert (len(times(row)), row.next_at, queries.state(row)) == (1, None, "ended")
    rounds.watch()
    services.resume(team.researcher, services.pause(team.researcher, row))
    assert len(times(row)) == 1 and queries.state(RunRepeat.objects.get()) == "ended"


def test_a_pause_leaves_out_what_comes_meanwhile_and_twice_is_one_entry(repeat, team):
    for _ in range(2):
        services.pause(team.researcher, repeat)
    due(repeat, 3 * HOUR)
    rounds.watch()
    assert times(repeat) == []
    for _ in range(2):
        services.resume(team.researcher, repeat)
    rounds.watch()
    repeat.refresh_from_db()
    assert times(repeat) == [] and repeat.next_at > timezone.now()
    actions = AuditEntry.objects.filter(action__startswith="run.repeat").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["run.repeat", "run.repeat_paused", "run.repeat_resumed"]
    shown = [(event.what, event.why) for event in history.events(Run.objects.get(pk=repeat.run_id))[0]]
    assert ("Repeated by the clock", "every hour") in shown


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        (services.RepeatAsked(), {"every_hours"}),
        (services.RepeatAsked(Rhythm(1, time(2))), {"every_hours"}),
        (services.RepeatAsked(Rhythm(every_hours=0)), {"every_hours"}),
        (services.RepeatAsked(Rhythm(every_hours=1, weekday=1)), {"weekday"}),
        (services.RepeatAsked(Rhythm(at=time(2, tzinfo=UTC))), {"at"}),
        (services.RepeatAsked(Rhythm(at=time(2), weekday=7, zone="Mars/North")), {"weekday", "zone"}),
        (services.RepeatAsked(Rhythm(1), datetime(2020, 1, 1, tzinfo=UTC)), {"ends_at"}),
        (services.RepeatAsked(Rhythm(48), datetime.now(UTC) + HOUR), {"ends_at"}),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_field(run, team, asked, fields):
    with pytest.raises(Invalid) as refused:
        services.add(team.researcher, run, asked)
    assert set(refused.value.fields) == fields and not RunRepeat.objects.exists()


def test_one_key_is_one_repeat_and_a_workspace_has_no_more_than_it_may(run, team, monkeypatch):
    first = services.add(team.researcher, run, HOURLY, "k")
    assert services.add(team.researcher, run, HOURLY, "k") == first
    monkeypatch.setattr(services, "MOST", 1)
    with pytest.raises(Conflict, match="at most 1 "):
        services.add(team.researcher, run, HOURLY)


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_add_no_more_than_a_workspace_may_have(run, team, monkeypatch):
    monkeypatch.setattr(services, "MOST", 2)

    def add():
        with suppress(Conflict):
            services.add(team.researcher, run, HOURLY)

    concurrently([add] * 5)
    assert RunRepeat.objects.count() == 2


def test_a_run_that_is_deleted_takes_its_repeats_along_and_those_it_launched_stay(run, repeat, as_researcher):
    due(repeat)
    rounds.watch()
    told = "It is repeated by the clock"
    assert told in as_researcher.get(f"/runs/{run.pk}").content.decode(), "the question says so"
    assert told not in as_researcher.get(f"/runs/{launched(repeat).get().pk}").content.decode()
    Run.objects.get(pk=run.pk).delete()
    assert not RunRepeat.objects.exists() and Run.objects.count() == 1


def test_over_the_api(run, team, as_researcher, as_outsider):
    as_reviewer = browser(team.reviewer)
    url = f"/api/v1/runs/{run.pk}/repeats"
    body = {"at": "02:00", "weekday": 6, "zone": "Europe/Vienna"}
    for client, status in ((as_reviewer, 403), (as_outsider, 404)):
        assert client.post(url, body, content_type="application/json").status_code == status
    made = as_researcher.post(url, body, content_type="application/json")
    assert made.status_code == 201, made.content
    found = made.json()
    assert (found["rhythm"], found["state"], found["at"]) == (
        "every Sunday at 02:00 (Europe/Vienna)",
        "waiting",
        "02:00",
    )
    assert [each["id"] for each in as_reviewer.get("/api/v1/repeats").json()["items"]] == [found["id"]]
    assert as_outsider.get("/api/v1/repeats").json()["items"] == []
    one = f"/api/v1/repeats/{found['id']}"
    assert as_outsider.post(f"{one}/pause").status_code == 404 and as_reviewer.delete(one).status_code == 403
    paused = as_researcher.post(f"{one}/pause").json()
    assert (paused["state"], paused["next_at"]) == ("paused", None)
    assert as_researcher.post(f"{one}/resume").json()["next_at"] == found["next_at"]
    wrong = as_researcher.post(url, {"every_hours": 3, "at": "02:00"}, content_type="application/json")
    assert wrong.status_code == 422 and "every_hours" in wrong.content.decode()
    assert as_researcher.delete(one).status_code == 204
    assert as_researcher.delete(one).status_code == 404


def test_the_page_adds_pauses_and_asks_before_it_removes(run, as_researcher, team):
    as_reviewer = browser(team.reviewer)
    page = as_researcher.get(f"/experiments/repeats?run={run.pk}").content.decode()
    assert f'<option value="{run.pk}" selected>' in page and "No run is repeated." in page
    given = {"run": run.pk, "rhythm": "daily", "at": "25:00", "zone": "Nowhere/At_all"}
    again = as_researcher.post("/experiments/repeats", given)
    assert again.status_code == 422 and "enter a time such as 02:00" in again.content.decode()
    assert (
        "there is no time zone" in as_researcher.post("/experiments/repeats", given | {"at": "02:00"}).content.decode()
    )
    given |= {"at": "02:00", "zone": "Europe/Vienna", "newest_data": "1", "key": "once"}
    for _ in range(2):
        assert as_researcher.post("/experiments/repeats", given).status_code == 302
    row = RunRepeat.objects.get()
    assert (
        row.newest_data
        and "Every day at 02:00 (Europe/Vienna)" in as_researcher.get("/experiments/repeats").content.decode()
    )
    seen = as_reviewer.get("/experiments/repeats").content.decode()
    assert "Every day at 02:00" in seen and "Pause" not in seen
    act = f"/experiments/repeats/{row.pk}"
    as_researcher.post(act, {"action": "pause"})
    assert queries.state(RunRepeat.objects.get()) == "paused"
    assert browser(team.outsider).post(act, {"action": "resume"}).status_code == 404
    assert (
        "Stop repeating run 1?" in as_researcher.post(f"{act}/delete").content.decode() and RunRepeat.objects.exists()
    )
    as_researcher.post(f"{act}/delete", {"sure": "1"})
    assert not RunRepeat.objects.exists()


def test_hours_need_no_zone_and_a_form_that_was_sent_and_changed_repeats_again(run, as_researcher):
    given = {"run": run.pk, "rhythm": "hours", "every_hours": "6", "zone": "Nowhere/At_all", "key": "once"}
    assert as_researcher.post("/experiments/repeats", given).status_code == 302, "the page shows no zone beside hours"
    assert as_researcher.post("/experiments/repeats", given | {"every_hours": "8"}).status_code == 302
    assert list(RunRepeat.objects.order_by("pk").values_list("every_hours", "zone")) == [(6, "UTC"), (8, "UTC")]


def test_a_repeat_that_was_deleted_meanwhile_is_not_there(repeat, team):
    services.remove(team.researcher, repeat)
    services.remove(team.researcher, repeat)
    assert AuditEntry.objects.filter(action="run.repeat_removed").count() == 1
    with pytest.raises(Http404):
        services.pause(team.researcher, repeat)


@pytest.mark.django_db(transaction=True)
def test_a_repeat_can_be_deleted_while_a_worker_decides_its_time(repeat, team):
    due(repeat)
    concurrently([rounds.watch, lambda: services.remove(team.researcher, repeat)])
    assert not RunRepeat.objects.exists() and not RepeatTime.objects.exists()


def test_the_list_asks_as_much_of_the_database_however_many_there_are(
    run, team, as_researcher, django_assert_max_num_queries
):
    for _ in range(6):
        row = services.add(team.researcher, run, HOURLY)
        due(row)
    rounds.watch()
    with django_assert_max_num_queries(16):
        as_researcher.get("/experiments/repeats")


def test_it_begins_with_the_model_of_the_run_though_another_has_its_name(run, repeat, model):
    swap_names(model)
    due(repeat)
    rounds.watch()
    assert launched(repeat).get().model == model
