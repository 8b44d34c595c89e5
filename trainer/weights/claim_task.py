"""The constructed task of a claim, made on the cluster: its examples, and the small model that was taught for it."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.claims.tasks import TASKS
from trainer.claims.teaching import Progress
from trainer.contracts.weights import WeightsSteps
from trainer.metrics.claims import Setting

from .client import JobClient

MODEL = "model"
"""The folder of the model inside that of the job, and its name in the artifact store."""


def work(client: JobClient) -> Mapping[str, Any]:
    """Make the task; returns `{"examples", "files"}`. The examples are the results of the job, in their order; `files` are those of
    the model if they were sent to the artifact store. The same params give the same examples and the same model, so a job that was
    killed makes what is missing.
    """
    told = client.assignment
    task = TASKS[told.params["task"]]
    client.phase = "making the examples"
    examples = task.examples(Setting({}, (), wanted=int(told.params["wanted"])))
    client.store([{"canonical": row.canonical()} for row in examples[told.done :]])

    folder = Path(told.folder) / MODEL
    client.phase = "teaching the model"
    task.make_model(folder, _steps(client))
    files = client.objects.keep(folder, MODEL) if client.objects else ()
    return {"examples": len(examples), "files": [file.model_dump(mode="json") for file in files]}


def _steps(client: JobClient) -> Progress:
    """Reports how many steps of teaching are done, and the time left at the pace since the first one."""
    begun: list[float] = []

    def progress(done: int, total: int) -> None:
        begun[:] = begun or [time.monotonic()]
        pace = (time.monotonic() - begun[0]) / (done - 1) if done > 1 else None
        client.steps = WeightsSteps(
            done=done, total=total, seconds_left=None if pace is None else pace * (total - done)
        )
        client.check()

    return progress
