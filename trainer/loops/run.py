"""Takes a job to a finished run: make the stage, run the session, report how it ended."""

import traceback

from trainer import checkpoints
from trainer.arithmetic import settle_arithmetic
from trainer.config import RecipeConfig
from trainer.config.memory import is_shortage
from trainer.inference.sampling import EngineLost
from trainer.monitors import LeftUndone, RunMonitor
from trainer.storing import StorageAway, StoreRefused

from .registry import make_stage
from .session.devices import devices, narrow_matcher, settle_device, slow_precision
from .session.errors import AttemptAbandoned, ProcessLost, RunFailed, StopRequested
from .session.saving import FOLDER
from .session.session import Session
from .session.stage import Make, Stage, StageJob

_TRACEBACK_LINES = 12


def run_recipe(job: StageJob, resume: bool, make: Make = make_stage) -> bool:
    """Run to the end and report it to the monitor. True: finished or stopped; False: failed or abandoned.

    `make` makes the stage; by default it is that of the job's recipe.
    """
    session: Session | None = None
    stage: Stage | None = None
    monitor = job.monitor
    try:
        monitor.state("running")
        monitor.progress(0, "loading", 0, 1, None)
        settle_arithmetic(models=job.models.values())
        monitor.devices(*devices(job.config, settle_device()))
        if slow := slow_precision(job.config):
            monitor.log(slow, level="warning")
        if narrow := narrow_matcher(job.config):
            monitor.log(narrow)
        stage = make(job)
        session = Session(job, stage)
        if resume and session.resume():
            monitor.log(f"resumed after step {session.step}", session.step)
        summary = session.run()
        monitor.state("finished", step=session.step, summary=summary)
        return True
    except StopRequested:
        step, reason = _stopped(job, resume, session)
        monitor.state("stopped", reason, step=step, summary=session.summary if session else {})
        return True
    except AttemptAbandoned:
        return False
    except Exception as error:
        step = session.step if session else 0
        monitor.log(_last_lines(error), step, level="error")
        _say_what_is_missing(monitor, step)
        monitor.state("failed", explain(error, job.config), step=step, lost=isinstance(error, ProcessLost))
        return False
    finally:
        if stage:
            stage.close()


def _stopped(job: StageJob, resume: bool, session: Session | None) -> tuple[int, str]:
    """The last completed step, and a text about the end. Without a session, the run waited for its places."""
    if session:
        return session.step, f"Stopped after step {session.step}"
    saved = checkpoints.steps(job.run_dir / FOLDER) if resume else []
    if not saved:
        return 0, "Stopped before it began"
    return saved[-1], f"Stopped before it continued after step {saved[-1]}"


def explain(error: BaseException, config: RecipeConfig) -> str:
    """The advice about the error; for memory, what to lower."""
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError) or is_shortage(text):
        return f"Out of memory. Remedies: {config.memory_knobs()}."
    if isinstance(error, EngineLost):
        return f"{text}. Nothing is lost: resume the run from its last checkpoint."
    known = isinstance(error, RunFailed | ValueError | OSError | StorageAway | StoreRefused | LeftUndone)
    return text if known else f"{type(error).__name__}: {text}"


def _say_what_is_missing(monitor: RunMonitor, step: int) -> None:
    """Name the records that were reported since the last checkpoint of a failed run and not written."""
    try:
        monitor.flush()
    except LeftUndone as error:
        monitor.log(str(error), step, level="error")


def _last_lines(error: BaseException) -> str:
    lines = "".join(traceback.format_exception(error)).rstrip().splitlines()
    return "\n".join(lines[-_TRACEBACK_LINES:])
