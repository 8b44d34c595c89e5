"""The times of repeated runs: by hand, over changes of the clock, and against a reference that walks minute by minute or day by day."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.experiments.repeats.rhythm import Come, Rhythm

VIENNA = "Europe/Vienna"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)  # a Monday


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rhythm", "now", "first"),
    [
        (Rhythm(every_hours=6), NOON, utc(2026, 11, 30, 18)),
        (Rhythm(at=time(13)), NOON, utc(2026, 11, 30, 13)),
        (Rhythm(at=time(12)), NOON, utc(2026, 12, 1, 12)),
        (Rhythm(at=time(13), zone=VIENNA), NOON, utc(2026, 12, 1, 12)),
        (Rhythm(at=time(13), zone="America/New_York"), NOON, utc(2026, 11, 30, 18)),
        (Rhythm(at=time(1), zone="Pacific/Auckland"), NOON, utc(2026, 12, 1, 12)),
        (Rhythm(at=time(13), weekday=0), NOON, utc(2026, 11, 30, 13)),
        (Rhythm(at=time(11), weekday=0), NOON, utc(2026, 12, 7, 11)),
        (Rhythm(at=time(2), weekday=6, zone=VIENNA), NOON, utc(2026, 12, 6, 1)),
    ],
)
def test_the_first_time(rhythm, now, first):
    assert rhythm.first(now) == first


@pytest.mark.parametrize(
    ("now", "first"),
    [
        (
            utc(2027, 3, 27, 12),
            utc(2027, 3, 28, 1, 30),
        ),  # 02:30 does not exist that night: it is 03:30 by the new clock
        (utc(2027, 3, 28, 2), utc(2027, 3, 29, 0, 30)),
        (utc(2027, 10, 30, 12), utc(2027, 10, 31, 0, 30)),  # 02:30 comes twice that night: the first of both
        (utc(2027, 10, 31, 0, 30), utc(2027, 11, 1, 1, 30)),
    ],
)
def test_changes_of_the_clock_neither_leave_a_night_out_nor_double_it(now, first):
    assert Rhythm(at=time(2, 30), zone=VIENNA).first(now) == first


@pytest.mark.parametrize(
    ("rhythm", "due", "now", "come"),
    [
        (Rhythm(every_hours=2), NOON, NOON, Come(NOON, 0, utc(2026, 11, 30, 14))),
        (Rhythm(every_hours=2), NOON, utc(2026, 11, 30, 13, 59), Come(NOON, 0, utc(2026, 11, 30, 14))),
        (Rhythm(every_hours=2), NOON, utc(2026, 11, 30, 17), Come(utc(2026, 11, 30, 16), 2, utc(2026, 11, 30, 18))),
        (Rhythm(at=time(12)), NOON, NOON, Come(NOON, 0, utc(2026, 12, 1, 12))),
        (Rhythm(at=time(12)), NOON, utc(2026, 12, 4, 11), Come(utc(2026, 12, 3, 12), 3, utc(2026, 12, 4, 12))),
        (
            Rhythm(at=time(12), weekday=0),
            NOON,
            utc(2026, 12, 15),
            Come(utc(2026, 12, 14, 12), 2, utc(2026, 12, 21, 12)),
        ),
    ],
)
def test_of_the_times_that_have_come_the_newest_counts(rhythm, due, now, come):
    assert rhythm.come(due, now) == come


ZONES = st.sampled_from(
    ["UTC", VIENNA, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Auckland"]
)
MOMENTS = st.integers(0, 8 * 366 * 24 * 60).map(lambda minutes: utc(2024, 1, 1) + timedelta(minutes=minutes))


def clock(zone, at, weekday, first, last):
    """All times from `first` to `last`, day by day."""
    day, found = first.date() - timedelta(days=3), []
    while day <= last.date() + timedelta(days=9):
        if weekday is None or day.weekday() == weekday:
            found.append(datetime.combine(day, at, ZoneInfo(zone)).astimezone(UTC))
        day += timedelta(days=1)
    return found


@given(ZONES, st.times(), st.none() | st.integers(0, 6), MOMENTS, st.timedeltas(timedelta(), timedelta(days=40)))
def test_times_of_the_day_are_those_of_the_calendar(zone, at, weekday, start, gone):
    rhythm = Rhythm(at=at, weekday=weekday, zone=zone)
    due = rhythm.first(start)
    now = due + gone
    times = [each for each in clock(zone, at, weekday, start, now) if each > start]
    come = rhythm.come(due, now)
    so_far = [each for each in times if each <= now]
    assert due == times[0]
    assert come == Come(so_far[-1], len(so_far) - 1, times[len(so_far)])


@given(st.integers(1, 200), MOMENTS, st.timedeltas(timedelta(), timedelta(days=60)))
def test_hours_add_up(hours, start, gone):
    rhythm = Rhythm(every_hours=hours)
    due = rhythm.first(start)
    times = [due]
    while times[-1] <= due + gone:
        times.append(times[-1] + timedelta(hours=hours))
    assert rhythm.come(due, due + gone) == Come(times[-2], len(times) - 2, times[-1])


def test_words():
    assert Rhythm(every_hours=1).words == "every hour"
    assert Rhythm(every_hours=12).words == "every 12 hours"
    assert Rhythm(at=time(2)).words == "every day at 02:00 (UTC)"
    assert Rhythm(at=time(14, 5), weekday=4, zone=VIENNA).words == "every Friday at 14:05 (Europe/Vienna)"
