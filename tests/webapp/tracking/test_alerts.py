"""An alert of a program reaches the people who watch the run, once, and not without end."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.team import browser
from tests.webapp.webhooks.hooks import announced_events, listen
from webapp.notices import words
from webapp.notices.models import Notice
from webapp.tracking import alerts
from webapp.tracking import services as tracking

pytestmark = pytest.mark.django_db


@pytest.fixture
def logged(team):
    listen(team.owner)
    return tracking.begin(team.researcher, tracking.experiment(team.researcher, "elsewhere"), "mlflow", name="one")


def alert(row, number: int, title: str = "Loss", **given) -> None:
    said = {"title": title, "text": "it is NaN", "level": "ERROR"} | given
    tracking.log(row, tags={f"{alerts.PREFIX}{number}": json.dumps(said)})


def heard() -> list[dict]:
    return [facts for event, facts in announced_events() if event == "run.alert"]


def test_an_alert_is_a_notice_an_event_a_tag_and_a_line_of_the_history(logged, team):
    alert(logged, 1)
    alert(logged, 1)  # sent again, because the answer was lost
    [facts] = heard()
    assert (facts["run"], facts["title"], facts["text"], facts["level"]) == (
        logged.run_id,
        "Loss",
        "it is NaN",
        "ERROR",
    )
    row = Notice.objects.get(user=team.researcher.user, event="run.alert")
    assert (words.title(row), words.text(row)) == ("“one” of elsewhere alerts: Loss", "it is NaN")
    assert words.kind(row).tone == "bad" and words.href(row) == f"/runs/{logged.run_id}"
    assert logged.tags == {"alert.1": "ERROR: Loss · it is NaN"}
    client = browser(team.reviewer)
    assert "ERROR: Loss · it is NaN" in client.get(f"/runs/{logged.run_id}/history").content.decode()
    assert "alerts: Loss" in browser(team.researcher).get("/notices").content.decode()


def test_the_same_title_is_announced_once_a_minute_and_a_run_twenty_times_an_hour(logged, monkeypatch):
    alert(logged, 1)
    alert(logged, 2, text="again")
    assert len(heard()) == 1 and len(logged.tags) == 2
    monkeypatch.setattr(alerts, "SAME", timedelta(0))
    alert(logged, 3)
    assert len(heard()) == 2
    for number in range(4, 40):
        alert(logged, number, title=f"t{number}", level="INFO")
    assert len(heard()) == alerts.MOST and len(logged.tags) == 39
    later = timezone.now() + timedelta(hours=2)
    monkeypatch.setattr(timezone, "now", lambda: later)
    alert(logged, 40, title="after an hour")
    assert len(heard()) == alerts.MOST + 1


@pytest.mark.parametrize("value", ["no JSON", "[]", "{}", '{"title": " "}', "3"])
def test_what_is_no_alert_stays_a_tag(logged, value):
    tracking.log(logged, tags={f"{alerts.PREFIX}1": value})
    assert heard() == [] and logged.tags == {f"{alerts.PREFIX}1": value}


def test_an_alert_is_cut_and_an_unknown_level_is_info(logged):
    alert(logged, 1, title="t" * 900, text="x" * 9_000, level="PANIC")
    [facts] = heard()
    assert (len(facts["title"]), len(facts["text"]), facts["level"]) == (200, 4_000, "INFO")
