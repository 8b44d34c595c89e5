"""How long a run may take to finish its step and to write a checkpoint, after it was asked to stop or to pause."""

from datetime import datetime, timedelta

from ..metrics import points
from ..models import Run
from . import estimates

GRACE = timedelta(minutes=2)  # where there is nothing to finish, or little; and to write the checkpoint
UNMEASURED = timedelta(minutes=15)  # where its first step is under way, and nobody knows how long that takes
LONGEST = timedelta(hours=2)  # a step that takes longer is given up
STEP_S = "perf/step_s"
LAST = 20  # steps that say how long one takes
LOADING = ("", "loading")  # phases in which nothing would be lost


def step_took(run: Run) -> float | None:
    """Seconds of the slowest of its last steps; None before its first."""
    return points.highest(run.pk, STEP_S, run.step - LAST)


def grace(run: Run) -> timedelta:
    """The time from the request on. A process that sends nothing meanwhile is given up sooner, like any other."""
    slowest = step_took(run)
    if slowest is None:
        return GRACE if run.phase in LOADING else UNMEASURED
    return min(GRACE + timedelta(seconds=1.5 * slowest), LONGEST)


def is_overdue(run: Run, now: datetime, since: datetime) -> bool:
    """Whether it should have stopped by now; `since`: from when on we could have received its messages."""
    if run.state not in (Run.State.STOPPING, Run.State.PAUSING):
        return False
    if run.stop_by is not None and run.stop_by <= now:
        return True
    asked = now - max(run.state_at, since)
    return asked > GRACE and asked > grace(run)


def finishing(run: Run) -> str:
    """What the run does before it stops, if that takes a while; the end of a sentence."""
    slowest = step_took(run)
    if slowest is None or slowest < estimates.MINUTE:
        return ""
    return f". It finishes its step first, which may take {estimates.about(slowest)}, and saves"
