"""A run whose process was lost continues by itself: how often, and after how long."""

from datetime import datetime, timedelta

from webapp.core.problems import Invalid
from webapp.core.tasks import AHEAD

from ..models import Run
from ..outputs import starting_points
from . import utc_times

FIELD = "retries"
MOST = 20
BASE, LONGEST = timedelta(seconds=30), timedelta(minutes=15)


def check(count: int) -> None:
    """Raises Invalid at `retries`."""
    if not 0 <= count <= MOST:
        raise Invalid("The run cannot continue by itself so often.", {FIELD: f"must be between 0 and {MOST}"})


def retry_time(losses: int, now: datetime) -> datetime | None:
    """The time before which a run that has lost this many processes in a row does not continue. After the first loss it continues at once
    (None), because one loss says little. Then it waits, each time twice as long."""
    return now + min(BASE * 2 ** (losses - 1), LONGEST) if losses else None


def set_clocks_right(now: datetime) -> int:
    """Lets runs try again at once whose time for that is further away than any wait: it was set before the clock of the server went back. A time
    that somebody has set is left alone, because with it the losses no longer count. Returns their number."""
    late = Run.objects.filter(state=Run.State.QUEUED, losses__gt=0, not_before__gt=now + LONGEST + AHEAD)
    return late.update(not_before=None)


def retry_text(run: Run, at: datetime | None, now: datetime) -> str:
    """The next event of a run that has just lost a process, in words."""
    when = f", not before {utc_times.utc_text(at, now)}" if at else ""
    has_one = starting_points.has_one(run)
    does = "continues by itself from its last checkpoint" if has_one else "has no checkpoint and begins again by itself"
    return f"It {does}{when} ({run.losses + 1} of {run.retries})"
