"""A wait does not become longer if the clock is set back."""

from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery

from webapp.beat import BeatScheduler
from webapp.core import tasks
from webapp.datasets.models import Dataset


class Beat:
    """Beat on a simulated clock: the tasks that it starts until nothing is due, and the time that it would then sleep."""

    def __init__(self, monkeypatch, path) -> None:
        self.now = datetime(2026, 11, 23, 12, tzinfo=UTC)
        self.app = Celery("test", broker="memory://")
        self.app.conf.beat_schedule = {
            str(every): {"task": f"every.{every}", "schedule": every} for every in (10.0, 60.0)
        }
        monkeypatch.setattr(self.app, "now", lambda: self.now)
        self.scheduler = BeatScheduler(self.app, schedule_filename=str(path / "beat"))
        self.sent: list[str] = []
        monkeypatch.setattr(self.scheduler, "apply_async", lambda entry, **_: self.sent.append(entry.task))

    def asks(self) -> tuple[set[str], float]:
        self.sent.clear()
        while not (sleeps := self.scheduler.tick()):
            pass
        return set(self.sent), sleeps


@pytest.mark.parametrize("back", [timedelta(hours=2), timedelta(seconds=40)])
def test_beat_goes_on(back, monkeypatch, tmp_path):
    beat = Beat(monkeypatch, tmp_path)
    beat.asks()
    beat.now += timedelta(seconds=60.5)
    assert beat.asks()[0] == {"every.10.0", "every.60.0"}
    beat.now -= back
    _, sleeps = beat.asks()
    assert sleeps <= 10.5
    beat.now += timedelta(seconds=10.5)
    assert beat.asks()[0] == {"every.10.0"}
    beat.now += timedelta(seconds=50)
    assert beat.asks()[0] == {"every.10.0", "every.60.0"}
    beat.now += timedelta(hours=2)
    assert beat.asks()[0] == {"every.10.0", "every.60.0"}


@pytest.mark.django_db
def test_a_sign_of_life_that_lies_ahead_says_nothing(team):
    now = datetime.now(UTC)
    stamps = {
        "ahead": timedelta(hours=2),
        "a little": timedelta(minutes=1),
        "now": timedelta(),
        "long ago": -timedelta(hours=1),
    }
    for name, away in stamps.items():
        Dataset.objects.create(workspace=team.workspace, name=name, deleting_at=now + away)
    silent = Dataset.every.filter(tasks.silent("deleting_at", timedelta(minutes=10)))
    assert set(silent.values_list("name", flat=True)) == {"ahead", "long ago"}
