"""From a job to a finished run: make the stage, run the session, say how it ended."""

import traceback

from trainer.arithmetic import settle_arithmetic
from trainer.config import RecipeConfig
from trainer.config.memory import is_shortage
from trainer.inference.sampling import EngineLost
from trainer.storing import StoreAway, StoreRefused

from .errors import AttemptAbandoned, RunFailed, StopRequested
from .registry import make_stage
from .session import Session
from .stage import Job, Make, Stage
from .where import devices, settle_device

_TRACEBACK_LINES = 12


def run_recipe(job: Job, resume: bool, make: Make = make_stage) -> bool:
    """Runs to an end that the monitor has been told of. True: finished or stopped; False: failed or abandoned.

    `make` makes the stage; left out, it is that of the job's recipe.
    """
    session: Session | None = None
    stage: Stage | None = None
    monitor = job.monitor
    try:
        monitor.state("running")
        monitor.progress(0, "loading", 0, 1, None)
        settle_arithmetic()
        monitor.devices(*devices(job.config, settle_device()))
        stage = make(job)
        session = Session(job, stage)
        if resume and session.resume():
            monitor.log(f"resumed after step {session.step}", session.step)
        summary = session.run()
        monitor.state("finished", step=session.step, summary=summary)
        return True
    except StopRequested:
        step = session.step if session else 0
        summary = session.summary if session else {}
        monitor.state("stopped", f"Stopped after step {step}", step=step, summary=summary)
        return True
    except AttemptAbandoned:
        return False
    except Exception as error:
        step = session.step if session else 0
        monitor.log(_last_lines(error), step, level="error")
        monitor.state("failed", explain(error, job.config), step=step)
        return False
    finally:
        if stage:
            stage.close()


def explain(error: BaseException, config: RecipeConfig) -> str:
    """What a person can do about it; for memory, what to lower."""
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError) or is_shortage(text):
        return f"Out of memory. What helps: {config.memory_knobs()}."
    if isinstance(error, EngineLost):
        return f"{text}. Nothing is lost: resume the run from its last checkpoint."
    known = isinstance(error, RunFailed | ValueError | OSError | StoreAway | StoreRefused)
    return text if known else f"{type(error).__name__}: {text}"


def _last_lines(error: BaseException) -> str:
    lines = "".join(traceback.format_exception(error)).rstrip().splitlines()
    return "\n".join(lines[-_TRACEBACK_LINES:])
