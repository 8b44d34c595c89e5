"""Stops or pauses a run that was asked to end, and says how long this may take.

The run gives up its step before the next micro-batch, the next token or, with vLLM, the next step of the engine, and writes a checkpoint of the
steps that are done. A resumed run makes the step again. This holds for every recipe and runner. Only short work is not interrupted: a push
of weights, the trial of a role after its turn, a checkpoint, the writing of the models at the end. `GRACE` and `time_to_stop` leave room for a
long micro-batch and a large checkpoint.
"""

from datetime import datetime, timedelta

from ..metrics import points
from ..models import Run
from . import estimates

GRACE = timedelta(minutes=2)  # if it is loading, or its steps are short; and to write the checkpoint
UNMEASURED = timedelta(minutes=15)  # if its first step is under way, and nobody knows how long its parts take
LONGEST = timedelta(hours=2)  # a run that has not saved by then is killed
STEP_S = "perf/step_s"
LAST = 20  # steps that say how long one takes
LOADING = ("", "loading")  # phases in which nothing would be lost


def step_took(run: Run) -> float | None:
    """Seconds of the slowest of its last steps; None before its first."""
    return points.highest(run.pk, STEP_S, run.step - LAST)


def time_to_stop(run: Run) -> timedelta:
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
    return asked > GRACE and asked > time_to_stop(run)


def giving_up(run: Run) -> str:
    """The work that the run gives up when it stops, if that is more than a minute of work. The words end a sentence."""
    slowest = step_took(run)
    if slowest is None or slowest < estimates.MINUTE:
        return ""
    return f". It saves and gives up its present step, which may be {estimates.about(slowest)} of work"
