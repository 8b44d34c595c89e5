"""A run whose program is silent counts as lost, and continues when the program reports again. Also: params that are numbers."""

from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.core.models import AuditEntry
from webapp.experiments import table_facts
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Run
from webapp.experiments.table.models import RunValue
from webapp.tracking import services

pytestmark = pytest.mark.django_db
LONG_AGO = timedelta(days=1)


def silent(key: str, since: timedelta = LONG_AGO) -> Run:
    run = Run.objects.get(logged__key=key)
    Run.objects.filter(pk=run.pk).update(heartbeat_at=timezone.now() - since)
    return run


def looked(heard: timedelta = timedelta(hours=1)) -> int:
    return services.mark_lost(timezone.now() - heard)


def test_silence_ends_a_run_and_a_word_brings_it_back(rest_client):
    quiet, busy = rest_client.run(), rest_client.run()
    rest_client.log(busy, ("loss", 1.0, 0))
    run = silent(quiet)
    assert looked(timedelta(minutes=9)) == 0  # the server has only just started to receive messages
    assert looked() == 1 and looked() == 0
    run.refresh_from_db()
    assert run.state == "failed" and "said nothing for 6 hours" in run.state_reason
    assert timezone.now() - run.ended_at > timedelta(hours=23)
    assert (
        rest_client.get_run(quiet)["info"]["status"] == "FAILED"
        and rest_client.get_run(busy)["info"]["status"] == "RUNNING"
    )
    assert AuditEntry.objects.filter(action="run.failed").count() == 1

    assert rest_client.log(quiet, ("loss", 0.5, 1)).status_code == 200
    run.refresh_from_db()
    assert (run.state, run.ended_at, run.logged.lost_at) == ("running", None, None) and run.step == 1
    assert looked() == 0
    assert rest_client.post("runs/update", run_id=quiet, status="FINISHED").status_code == 200
    run.refresh_from_db()
    assert run.state == "finished"


def test_a_file_is_a_word_too_and_an_end_stays_an_end(rest_client, settings, tmp_path):
    settings.VAR = tmp_path / "var"
    lost, ended = rest_client.run(), rest_client.run()
    rest_client.post("runs/update", run_id=ended, status="FAILED")
    silent(ended)
    run = silent(lost)
    assert looked() == 1
    assert rest_client.send(lost, "notes.txt", b"x").status_code == 200
    assert rest_client.log(ended, ("loss", 1.0, 0)).status_code == 200
    run.refresh_from_db()
    assert run.state == "running" and Run.objects.get(logged__key=ended).state == "failed"


def test_who_marks_a_run_as_stopped_is_believed(rest_client, team):
    key = rest_client.run()
    lifecycle.stop(team.researcher, Run.objects.with_names().get(logged__key=key))
    silent(key)
    assert looked() == 0
    rest_client.log(key, ("loss", 1.0, 0))
    assert Run.objects.get(logged__key=key).state == "stopped"


def test_never_is_never_and_a_deleted_run_is_left_alone(rest_client, settings):
    key, gone = rest_client.run(), rest_client.run()
    rest_client.post("runs/delete", run_id=gone)
    silent(gone)
    assert looked() == 0
    silent(key)
    settings.LOGGED_SILENCE_HOURS = 0
    assert looked() == 0


def found_names(client, query: str) -> set[str]:
    answer = client.get("/api/v1/runs/table", {"q": query})
    assert answer.status_code == 200, answer.content
    return {each["run"]["name"] for each in answer.json()["items"]}


def test_params_that_are_numbers_are_found_as_numbers(rest_client, as_researcher):
    for name, rate in (("small", "1e-4"), ("large", "0.01"), ("word", "auto")):
        key = rest_client.run(run_name=name)
        rest_client.log(key, params=[{"key": "lr", "value": rate}, {"key": "commit", "value": "0012"}])
    assert found_names(as_researcher, "config.lr<1e-3") == {"small"} and found_names(
        as_researcher, "config.lr>=1e-3"
    ) == {"large"}
    assert found_names(as_researcher, "config.lr:0.0001") == {"small"} and found_names(
        as_researcher, "config.lr:auto"
    ) == {"word"}
    assert found_names(as_researcher, "config.commit:0012") == {"small", "large", "word"}
    params = {each["key"]: each["value"] for each in rest_client.get_run(key)["data"]["params"]}
    assert params == {"lr": "auto", "commit": "0012"}  # the program reads its own values
    assert RunValue.objects.get(run__name="small", column__path="lr").text is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0), ("-2.50", -2.5), ("1e-4", 1e-4), (".5", 0.5), ("3.", 3.0), ("+7E+2", 700.0), ("0", 0.0), ("123456789012345", 123456789012345.0),
        ("007", "007"), ("1234567890123456", "1234567890123456"), ("nan", "nan"), ("inf", "inf"), ("1_000", "1_000"), ("", ""), (".", "."),
        ("1e999", "1e999"), ("1 ", "1 "), ("1\n", "1\n"), ("٣", "٣"), (True, True), (None, None), ("0x10", "0x10"),
    ],
)  # fmt: skip
def test_which_texts_are_numbers(text, value):
    read = table_facts.read(text)
    assert read == value and type(read) is type(value)
