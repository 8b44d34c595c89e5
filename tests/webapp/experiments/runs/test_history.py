"""The history of a run on the page and over the API: what happened, by whom, and why."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from webapp.core.auditing import chain
from webapp.core.models import AuditEntry
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle import states
from webapp.experiments.models import Run
from webapp.experiments.runs import history
from webapp.experiments.table import services as table


def event_words(run):
    return [(event.what, event.who, event.why) for event in history.events(run)[0]]


@pytest.fixture
def lived(run, team):
    """A run that Rosa launched, stopped and resumed. It began, and the machine lost it."""
    states.move(run, "starting", reason="Handing it to Ray")
    states.move(run, "running")
    lifecycle.stop(team.researcher, run)
    states.move(run, "stopped", reason="Stopped after step 3")
    lifecycle.resume(team.researcher, run)
    states.move(run, "failed", reason="Ray refused the job")
    return run


def test_every_change_says_who_made_it_and_why(lived):
    assert event_words(lived) == [
        ("Failed", "", "Ray refused the job"),
        ("In the line again, as attempt 2", "Rosa", ""),
        ("Stopped", "", "Stopped after step 3"),
        ("Asked to stop", "Rosa", ""),
        ("Running", "", ""),
        ("Starting", "", "Handing it to Ray"),
        ("Launched", "Rosa", ""),
    ]


def test_what_the_server_asked_for_itself_keeps_its_reason(run):
    states.move(run, "starting")
    lifecycle.stop_as(None, run, "sweep 3 was stopped")
    assert event_words(run)[0] == ("Asked to stop", "", "sweep 3 was stopped")


def test_what_changed_no_state_stands_between_and_ends_no_state(run, team):
    table.set_tags(team.researcher, run, ["keep", "lr"])
    lifecycle.rename(team.researcher, run, "better")
    states.move(run, "starting")
    starting, renamed, tagged, launched = history.events(run)[0]
    assert (renamed.what, renamed.why, renamed.state, renamed.lasted_s) == ("Renamed", "better", "", None)
    assert (tagged.what, tagged.why) == ("Tagged", "keep, lr")
    assert launched.lasted_s == (starting.at - launched.at).total_seconds()


def test_a_state_lasts_until_the_next_one_also_over_pages_and_the_last_one_until_now(run, lived, monkeypatch):
    whole, older = history.events(lived)
    assert older is None and whole[0].lasted_s is None, "it is over"
    pages, cursor = [], None
    while True:
        found, cursor = history.events(lived, cursor, 2)
        pages += found
        if cursor is None:
            break
    assert pages == whole
    Run.objects.filter(pk=run.pk).update(state="running")
    run.refresh_from_db()
    now = whole[0].at + timedelta(seconds=90)
    monkeypatch.setattr(timezone, "now", lambda: now)
    assert history.events(run)[0][0].lasted_s == 90


def test_who_erased_their_account_is_not_named_and_not_taken_for_the_server(lived, team):
    while chain.seal():
        pass
    AuditEntry.objects.filter(actor=team.researcher.user).update(actor=None)
    events = history.events(lived)[0]
    assert [(event.who, event.erased) for event in events[:2]] == [("", False), ("", True)]


def test_the_page_shows_it_and_another_workspace_does_not(lived, as_researcher, as_outsider):
    shown = as_researcher.get(f"/runs/{lived.id}/history").content.decode()
    assert "In the line again, as attempt 2" in shown and "Rosa" in shown and "the server" in shown
    assert as_outsider.get(f"/runs/{lived.id}/history").status_code == 404
    assert "Failed" in as_researcher.get(f"/runs/{lived.id}/history?cursor=none").content.decode()


def test_the_api_gives_it_by_pages(lived, as_researcher, as_annotator):
    url = f"/api/v1/runs/{lived.id}/history"
    first = as_researcher.get(f"{url}?limit=3").json()
    rest = as_researcher.get(f"{url}?cursor={first['next']}").json()
    assert [item["state"] for item in first["items"] + rest["items"]][-3:] == ["running", "starting", "queued"]
    assert first["items"][1]["attempt"] == 2 and rest["next"] is None
    assert as_annotator.get(url).status_code == 403


def test_a_long_history_costs_as_much_as_a_short_one(lived, as_researcher, team):
    as_researcher.get(f"/runs/{lived.id}/history")
    with CaptureQueriesContext(connection) as few:
        as_researcher.get(f"/runs/{lived.id}/history")
    for i in range(120):
        lifecycle.rename(team.researcher, lived, f"name {i}")
    with CaptureQueriesContext(connection) as many:
        shown = as_researcher.get(f"/runs/{lived.id}/history").content.decode()
    assert len(many) == len(few) and "Older" in shown
