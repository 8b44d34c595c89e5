"""Checkpoints that a new run can continue from: the files of one run, linked into the folder of another or copied in the store."""

import os
import shutil

from django.db.models import Exists, OuterRef, QuerySet

from webapp.core.problems import Conflict
from webapp.core.storage import artifact_store

from ..models import OVER, Artifact, Run
from . import artifacts

CHECKPOINT = "checkpoint"


def checkpoints(run: Run) -> list[Artifact]:
    """The checkpoints whose files still exist, newest first: a run keeps only its newest."""
    rows = Artifact.objects.filter(run=run, role=CHECKPOINT).order_by("-step")
    return [row for row in rows if artifacts.is_there(row)]


def has_one(run: Run) -> bool:
    """Whether the next attempt of the run continues, and does not begin again: from a checkpoint of its own, also one that its process has
    written and not reported before it was lost, or from that of the run from which it was forked."""
    return run.start_step > 0 or bool(_steps(run))


def _steps(run: Run) -> set[int]:
    written = (artifacts.folder(run.pk) / "checkpoints").glob("step-*")
    names = (path.name.removeprefix("step-") for path in written)
    return {row.step for row in checkpoints(run)} | {int(name) for name in names if name.isdecimal()}


def remains(run: Run) -> str:
    """Words for the checkpoint of a run whose process was ended without saving."""
    if _steps(run) - ({run.start_step} if run.start_step else set()):
        return "its last checkpoint remains"
    began = ", and can continue from that with which it began" if run.start_step else ""
    return f"it had made no checkpoint{began}"


def resuming(run: Run) -> str:
    """Words for the effect of *Resume* on the run."""
    if has_one(run):
        return "Resume continues from the last checkpoint"
    return "Resume begins again at the first step, because there is no checkpoint"


def checkpoint(run: Run, step: int) -> Artifact:
    """The checkpoint of this step. Raises Conflict if the run does not keep it; the message names those it keeps."""
    kept = checkpoints(run)
    found = next((row for row in kept if row.step == step), None)
    if found is None:
        steps = ", ".join(str(row.step) for row in kept)
        has = f"it keeps those of {steps}" if kept else "it keeps none"
        raise Conflict(f"{run} keeps no checkpoint of step {step}; {has}.", code="no_checkpoint")
    return found


def keep_checkpoint(source: Artifact) -> None:
    """The checkpoint is neither pruned from the artifact store nor deleted by a rule until the transaction ends, and afterwards not while
    a fork awaits it. Raises Conflict if it just was, or if there is no such store any more."""
    if Run.objects.select_for_update(no_key=True).filter(id=source.run_id).first() is None:
        raise Conflict("The run was just deleted, with its checkpoints.", code="no_checkpoint")
    if Artifact.objects.filter(id=source.id).exclude(removed_at=None).exists():
        raise Conflict(f"The checkpoint of step {source.step} was just deleted by the rule.", code="no_checkpoint")
    if not source.files:
        return
    if not artifact_store.is_configured():
        raise Conflict("The checkpoint is in object storage, but ARTIFACT_STORE is not set.", code="no_checkpoint")
    if not Artifact.objects.filter(id=source.id).exclude(files=[]).exists():
        raise Conflict(f"The checkpoint of step {source.step} was just replaced by a newer one.", code="no_checkpoint")


def awaiting(run: Run) -> QuerySet[Run]:
    """Forks that continue from a checkpoint of `run` in the artifact store and have no copy of it yet: their launch makes one."""
    rows = Artifact.objects.filter(role=CHECKPOINT)
    there = rows.filter(run=run, step=OuterRef("start_step")).exclude(files=[])
    theirs = rows.filter(run=OuterRef("id"))
    forks = Run.objects.filter(forked_from=run, start_step__gt=0).exclude(state__in=OVER | {Run.State.DRAFT})
    return forks.filter(Exists(there)).exclude(Exists(theirs))


def adopt(source: Artifact, run: Run) -> None:
    """The checkpoint becomes one of `run` as well: what the other run prunes does not concern it.

    Files are linked, not copied, because nobody writes into a checkpoint that is complete. What lies in the artifact store is copied
    there when the run is launched. Raises Conflict if the files are gone.
    """
    if source.files:
        return
    folder = artifacts.folder(source.run_id) / source.path
    target = artifacts.folder(run.id) / source.path
    try:
        shutil.copytree(folder, target, copy_function=_link)
    except OSError as error:
        shutil.rmtree(artifacts.folder(run.id), ignore_errors=True)
        raise Conflict(f"The checkpoint cannot be taken over: {error}", code="no_checkpoint") from error


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
    return target
