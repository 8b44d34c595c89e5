"""Estimates how long a run continues, and when the next places are free. An unknown value is None, never a guess."""

from collections.abc import Iterable
from datetime import datetime

from trainer.contracts.plurals import with_noun
from webapp.weights.models import WeightsJob

from ..models import Run

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def seconds_left(run: Run, now: datetime) -> float | None:
    """Seconds until the run is over, as its process last said; None if it has not said, or stands still."""
    if (
        run.state not in (Run.State.RUNNING, Run.State.PAUSING, Run.State.STOPPING)
        or run.eta_s is None
        or run.heartbeat_at is None
    ):
        return None
    return max(0.0, run.eta_s - max(0.0, (now - run.heartbeat_at).total_seconds()))


def left_of_job(job: WeightsJob, now: datetime) -> float | None:
    """Seconds until the job has done its items, at the pace of those it has done; None before the first one, and if it continues
    from an earlier attempt, whose time is not known."""
    if job.state != WeightsJob.State.RUNNING or job.attempt > 1 or job.started_at is None or not job.done:
        return None
    return max(0.0, (now - job.started_at).total_seconds()) * max(0, job.total - job.done) / job.done


def until(wanted: float, frees: Iterable[tuple[float | None, float]]) -> float | None:
    """Seconds until `wanted` are free; `frees` lists (seconds, number given back) for each holder. None if the known ones are not
    enough."""
    if wanted <= 0:
        return 0.0
    for seconds, count in sorted((after, count) for after, count in frees if after is not None):
        wanted -= count
        if wanted <= 0:
            return seconds
    return None


def about(seconds: float) -> str:
    """The time in coarse steps, so that a text with it changes seldom: about 6 min, about 3 hours."""
    if seconds < 1.5 * MINUTE:
        return "about a minute"
    if seconds < 10 * MINUTE:
        return f"about {round(seconds / MINUTE)} min"
    if seconds < 57.5 * MINUTE:
        return f"about {5 * round(seconds / (5 * MINUTE))} min"
    if seconds < 1.5 * HOUR:
        return "about an hour"
    if seconds < 36 * HOUR:
        return f"about {with_noun(round(seconds / HOUR), 'hours')}"
    return f"about {with_noun(round(seconds / DAY), 'days')}"
