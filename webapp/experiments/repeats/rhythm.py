"""Computes the times at which a run is launched again: pure functions of times."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

WEEK, DAY = 7, 1
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Come:
    """The newest of the times that have come since one was due, the number of those before it, and the time that follows."""

    newest: datetime
    missed: int
    following: datetime


@dataclass(frozen=True)
class Rhythm:
    """Every `every_hours`, or at `at` by the clock of `zone`, on each day or on one `weekday` (0: Monday).

    If the clock is set forward over `at`, the time of that day is as long after midnight as if the clock had not been set; if the clock is
    set back over it, the first of both counts.
    """

    every_hours: int | None = None
    at: time | None = None
    weekday: int | None = None
    zone: str = "UTC"

    def first(self, now: datetime) -> datetime:
        """The first time after `now`."""
        return now + timedelta(hours=self.every_hours) if self.every_hours else self._after(now)

    def come(self, due: datetime, now: datetime) -> Come:
        """Needs due <= now."""
        if self.every_hours:
            step = timedelta(hours=self.every_hours)
            missed = (now - due) // step
            newest = due + missed * step
            return Come(newest, missed, newest + step)
        following = self._after(now)
        newest = max(due, self._on(self._day(following) - timedelta(days=self._days)))
        return Come(newest, (self._day(newest) - self._day(due)).days // self._days, following)

    @property
    def words(self) -> str:
        """every 6 hours; every day at 02:00 (Europe/Vienna)"""
        if self.every_hours:
            return "every hour" if self.every_hours == 1 else f"every {self.every_hours} hours"
        day = "day" if self.weekday is None else WEEKDAYS[self.weekday]
        return f"every {day} at {self.at:%H:%M} ({self.zone})"

    @property
    def _days(self) -> int:
        return DAY if self.weekday is None else WEEK

    def _after(self, moment: datetime) -> datetime:
        day = self._day(moment) - timedelta(days=1)
        if self.weekday is not None:
            day += timedelta(days=(self.weekday - day.weekday()) % WEEK)
        while (found := self._on(day)) <= moment:
            day += timedelta(days=self._days)
        return found

    def _day(self, moment: datetime) -> date:
        return moment.astimezone(ZoneInfo(self.zone)).date()

    def _on(self, day: date) -> datetime:
        return datetime.combine(day, self.at or time(), ZoneInfo(self.zone)).astimezone(UTC)
