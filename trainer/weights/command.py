"""`python -m trainer weights-job`: what Ray starts. Asks the server what to do, does it, and reports.

The process needs three variables: TOUCHSTONE_URL, TOUCHSTONE_WEIGHTS_JOB and TOUCHSTONE_RUN_TOKEN.
"""

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from trainer import tracing
from trainer.config.memory import is_shortage
from trainer.monitors.spool import disk_is_full
from trainer.storing import StorageAway, StoreRefused

from .client import Abandoned, JobClient, JobStopped, ServerAway

JOB = "TOUCHSTONE_WEIGHTS_JOB"
Work = Callable[[JobClient], Mapping[str, Any]]
"""Does the job and returns its outcome. Raises JobStopped, Abandoned, ServerAway, and any other error."""
WORK = {
    "generate": "trainer.weights.generate:work",
    "score": "trainer.weights.score:work",
    "logprobs": "trainer.weights.logprobs:work",
    "embed": "trainer.weights.embed:work",
    "judge": "trainer.weights.judge:work",
    "export": "trainer.weights.export:work",
    "task": "trainer.weights.claim_task:work",
}
_TRACEBACK_LINES = 12


def main(arguments: list[str]) -> int:
    """0: finished or stopped; 1: failed; 2: called wrongly; 3: abandoned, or the server is away."""
    missing = [name for name in ("TOUCHSTONE_URL", JOB, "TOUCHSTONE_RUN_TOKEN") if not os.environ.get(name)]
    if arguments or missing:
        reason = f"it lacks {', '.join(missing)}" if missing else "it takes no arguments"
        print(f"python -m trainer weights-job is started by the server through Ray; {reason}", file=sys.stderr)
        return 2
    url = f"{os.environ['TOUCHSTONE_URL'].rstrip('/')}/api/v1/ingest/weights/{os.environ[JOB]}"
    try:
        with JobClient(url, os.environ["TOUCHSTONE_RUN_TOKEN"]) as client:
            told: dict[str, tracing.Value] = {"touchstone.job.id": os.environ[JOB]}
            with tracing.job("touchstone-weights-job", f"job {client.assignment.kind}", told) as span:
                code = carry_out(client)
                if code:
                    span.failed(str(code))
            return code
    except Abandoned as error:
        print(f"abandoned: {error}", file=sys.stderr)
    except ServerAway as error:
        print(error, file=sys.stderr)
    return 3


def carry_out(client: JobClient) -> int:
    signal.signal(signal.SIGTERM, _stopped)
    try:
        client.phase = "loading"
        client.settle()
        outcome = _work(client.assignment.kind)(client)
    except JobStopped as stopped:
        client.end("stopped", str(stopped) or "Stopped; what was found is kept")
        return 0
    except (Abandoned, ServerAway):
        raise
    except Exception as error:
        lines = "".join(traceback.format_exception(error)).rstrip().splitlines()[-_TRACEBACK_LINES:]
        client.log("\n".join(lines), "error")
        client.end("failed", explain(error))
        return 1
    finally:
        client.clear()
    client.end("finished", outcome=outcome)
    return 0


def explain(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError) or is_shortage(text):
        return "Out of memory. Remedies: fewer responses side by side (sampler.max_batch), shorter responses, or a machine with more memory."
    if disk_is_full(error):
        return f"The disk is full: what was there before is as it was. Free some space, then retry. ({text})"
    known = isinstance(error, ValueError | OSError | StorageAway | StoreRefused)
    return text if known else f"{type(error).__name__}: {text}"


def _work(kind: str) -> Work:
    module, _, name = WORK[kind].partition(":")
    found: Work = getattr(importlib.import_module(module), name)
    return found


def _stopped(*_: object) -> None:
    raise JobStopped
