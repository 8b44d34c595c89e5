"""The files of a run in the artifact store, if the installation has one."""

from collections.abc import Callable
from pathlib import Path

from django.db import transaction
from django.db.models import QuerySet

from trainer.contracts import ModelSource
from trainer.contracts.storing import Links, Upload
from webapp.core.problems import Problem
from webapp.core.storage import artifact_store
from webapp.core.tasks import enqueue
from webapp.inference.folders import stored
from webapp.inference.queries import source

from .. import queries
from ..models import Artifact, Run
from ..rewards import grants
from . import artifacts, starting_points
from .starting_points import CHECKPOINT


def sources(run: Run) -> list[ModelSource]:
    """All sources that its process loads: models by role, and judges with local weights."""
    models = list(queries.models_by_role(run).values())
    models += [
        version.endpoint.registered_model
        for version in grants.versions(run).values()
        if version.endpoint is not None and version.endpoint.registered_model is not None
    ]
    return [source(model) for model in models]


def make_ready(run: Run, beat: Callable[[], None]) -> None:
    """Copies the files that the run needs and that only this server has. `beat` is called now and then.

    Raises StoreAway, OSError, and Problem if a folder is gone.
    """
    stored.copied(run.experiment.workspace_id, sources(run), beat)
    if _kept(run).exists():
        return
    if found := sorted((artifacts.folder(run.id) / "checkpoints").glob("step-*")):
        _copy_checkpoint(run, found[-1], beat)
    elif run.start_step:
        _take_over(run, beat)


def _copy_checkpoint(run: Run, folder: Path, beat: Callable[[], None]) -> None:
    """The newest in the run's folder here: it was forked from a run without a store, or began before there was one."""
    files = stored.listed(folder, beat)
    row = Artifact(
        run=run, path=f"checkpoints/{folder.name}", role=CHECKPOINT, step=int(folder.name.removeprefix("step-"))
    )
    artifact_store.keep(artifacts.place(row), folder, files, beat)
    Artifact.objects.update_or_create(
        run=run,
        path=row.path,
        defaults={"files": [file.model_dump() for file in files]},
        create_defaults={
            "step": row.step,
            "role": CHECKPOINT,
            "bytes": sum(file.bytes for file in files),
            "digest": stored.digest(files),
            "files": [file.model_dump() for file in files],
        },
    )


def _take_over(run: Run, beat: Callable[[], None]) -> None:
    """The checkpoint of another run that it continues from, copied within the store. A run that was deleted meanwhile leaves none.

    Raises Problem if it is gone, and StoreAway; then what is there already is not copied again.
    """
    rows = Artifact.objects.filter(run=run.forked_from_id, role=CHECKPOINT, step=run.start_step)
    source = rows.exclude(files=[]).first()
    if source is None:
        raise Problem(
            f"The checkpoint of step {run.start_step} that the run continues from was removed.", code="gone", status=410
        )
    own = Artifact(run=run, path=source.path)
    artifact_store.copy(artifacts.place(source), artifacts.placed(source).files, artifacts.place(own), beat)
    facts = {name: getattr(source, name) for name in ("step", "role", "bytes", "digest", "files")}
    with transaction.atomic():
        there = Run.objects.select_for_update(no_key=True).filter(id=run.id).exists()
        if there:
            Artifact.objects.update_or_create(run=run, path=source.path, defaults=facts)
    if not there:
        remove(run.id)
        raise Problem("The run was deleted.", code="gone", status=410)
    enqueue("workers.runs.prune", source.run_id)  # which kept it for this run


def _kept(run: Run) -> QuerySet[Artifact]:
    return Artifact.objects.filter(run=run, role=CHECKPOINT).exclude(files=[]).order_by("-step")


def checkpoints(run: Run) -> tuple[str, ...]:
    """The checkpoints that the store has whole, newest first."""
    return tuple(row.path for row in _kept(run))


def upload(run_id: int, asked: Upload) -> Links:
    """Addresses to which the process may send the files of an artifact: below its own run, nowhere else. Raises StoreAway."""
    return artifact_store.links("PUT", artifacts.place(Artifact(run_id=run_id, path=asked.path)), asked.files)


def folder(run: Run, name: str) -> Links:
    """A model that the run loads, or an artifact of its own. Raises Problem 404, and StoreAway."""
    found = artifact(run, name) or stored.links(run.experiment.workspace_id, sources(run), name)
    if found is None:
        raise Problem(f"The artifact store has no folder {name} for this run.", code="not_found", status=404)
    return found


def artifact(run: Run, path: str) -> Links | None:
    """An artifact of the run; None if the store has none of that name. Raises StoreAway."""
    row = Artifact.objects.filter(run=run, path=path).exclude(files=[]).first()
    return artifact_store.links("GET", artifacts.place(row), artifacts.placed(row).files) if row else None


def prune(run_id: int) -> None:
    """Removes checkpoints that newer ones replaced from the store, first from the rows. Raises StoreAway; then it is called again."""
    run = Run.objects.filter(id=run_id).first()
    if run is None:
        return
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(id=run_id)
        awaited = set(starting_points.awaiting(run).values_list("start_step", flat=True))
        older = list(_kept(run))[int(run.config["checkpoint"]["keep"]) :]
        old = [row.pk for row in older if row.step not in awaited]
        Artifact.objects.filter(pk__in=old).update(files=[])
    there = [f"checkpoints/{name}" for name in artifact_store.below(f"runs/{run_id}/checkpoints")]
    for row in Artifact.objects.filter(run=run, role=CHECKPOINT, files=[], path__in=there):
        artifact_store.remove(artifacts.place(row))


def remove(run_id: int) -> None:
    """Removes all files of a deleted run. Raises StoreAway."""
    if artifact_store.is_configured():
        artifact_store.remove(f"runs/{run_id}")
