"""Checkpoints that a new run can go on from: the files of one run, linked into the folder of another."""

import os
import shutil

from webapp.core import artifact_store
from webapp.core.problems import Conflict

from . import outputs
from .models import Artifact, Run

CHECKPOINT = "checkpoint"


def checkpoints(run: Run) -> list[Artifact]:
    """Those whose files are still there, newest first: a run keeps only its newest."""
    rows = Artifact.objects.filter(run=run, role=CHECKPOINT).order_by("-step")
    return [row for row in rows if outputs.is_there(row)]


def checkpoint(run: Run, step: int) -> Artifact:
    """Raises Conflict where the run keeps none of that step, with those it keeps."""
    kept = checkpoints(run)
    found = next((row for row in kept if row.step == step), None)
    if found is None:
        steps = ", ".join(str(row.step) for row in kept)
        has = f"it keeps those of {steps}" if kept else "it keeps none"
        raise Conflict(f"{run} keeps no checkpoint of step {step}; {has}.", code="no_checkpoint")
    return found


def adopt(source: Artifact, run: Run) -> None:
    """The checkpoint becomes one of `run` as well: what the other run prunes does not concern it.

    Files are linked, not copied, for nobody writes into a checkpoint that is complete; in the artifact store they are copied
    there. Raises Conflict where they are gone, StoreAway where the storage does not answer.
    """
    if source.files:
        own = Artifact(
            run=run, step=source.step, role=CHECKPOINT, path=source.path, bytes=source.bytes, digest=source.digest
        )
        artifact_store.copy(outputs.place(source), outputs.placed(source).files, outputs.place(own))
        own.files = source.files
        own.save()
        return
    folder = outputs.folder(source.run_id) / source.path
    target = outputs.folder(run.id) / source.path
    try:
        shutil.copytree(folder, target, copy_function=_link)
    except OSError as error:
        shutil.rmtree(outputs.folder(run.id), ignore_errors=True)
        raise Conflict(f"The checkpoint cannot be taken over: {error}", code="no_checkpoint") from error


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
    return target
