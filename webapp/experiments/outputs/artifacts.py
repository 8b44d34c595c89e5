"""The trained models of a run, as rows of the registry; and the files that are still in its folder."""

import hashlib
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from django.conf import settings

from trainer.config import RECIPES
from trainer.contracts import ModelFacts
from trainer.contracts.model_folder import FILE_NAME
from webapp.core.storage import artifact_store
from webapp.core.storage.archive import ArchiveStretch, Download, Gone, ascii_name, of_path
from webapp.inference.folders.files import sent
from webapp.inference.folders.stored import Placed, fetched, placed_at
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.inference.registry import services as registry

from ..bulk import ArtifactRow
from ..models import Artifact, Run, RunSlot

ONE = "file"
"""The name in the store of the file of an artifact that is one file, if its own name has letters that the store does not take."""
_FITS = re.compile(FILE_NAME)


def folder(run_id: int) -> Path:
    return settings.VAR / "runs" / str(run_id)


def register(run: Run, rows: Iterable[ArtifactRow]) -> None:
    """Gives every model among the artifacts a row of the registry, or renews the existing one. The caller holds the lock of the run."""
    told = {row.data.path: row for row in rows if row.data.model is not None}
    if not told:
        return
    for artifact in Artifact.objects.filter(run=run, path__in=told).select_related("registered__base"):
        facts = told[artifact.path].data.model
        assert facts is not None  # noqa: S101  # chosen so above
        if artifact.registered is not None:
            registry.renew_output(artifact.registered, facts=facts, digest=artifact.digest)
            continue
        artifact.registered = registry.add_output(
            run.experiment.workspace,
            run.experiment.name,
            _ending(run, artifact, facts),
            path=str(folder(run.id) / artifact.path),
            facts=facts,
            digest=artifact.digest,
            base=run.base,
            run=run.pk,
        )
        artifact.save(update_fields=["registered"])


def _ending(run: Run, artifact: Artifact, facts: ModelFacts) -> str:
    """`-run-<n>`; what is not the recipe's first output, or not of the run's end, says so behind it."""
    recipe = RECIPES.get(run.recipe)
    first = recipe.outputs[0].role if recipe and recipe.outputs else facts.role
    other = "" if facts.name == first else f"-{facts.name}"
    earlier = "" if artifact.path == f"outputs/{facts.name}" else f"-step-{artifact.step}"
    return f"-run-{run.number}{other}{earlier}"


def user_of(run: Run) -> str:
    """The user of a model that this run has trained, in words: a run, a model on top of it, or an endpoint. Empty: nobody uses it."""
    mine = RegisteredModel.objects.filter(artifact__run=run)
    if slot := RunSlot.objects.filter(model__in=mine).exclude(run=run).select_related("run__experiment").first():
        return f"{slot.run} of {slot.run.experiment.name}"
    if endpoint := Endpoint.objects.filter(registered_model__in=mine).first():
        return f"The endpoint {endpoint}"
    derived = RegisteredModel.objects.filter(base__in=mine).first()
    return f"The model {derived}" if derived else ""


def is_there(artifact: Artifact) -> bool:
    """Whether the files still exist: only the newest checkpoints are kept, and a rule may delete more. For the artifact store, the row is
    trusted."""
    if artifact.removed_at is not None:
        return False
    return bool(artifact.files) or (folder(artifact.run_id) / artifact.path).exists()


def why_gone(checkpoint: Artifact) -> str:
    """The reason why a checkpoint is not there any more."""
    if checkpoint.removed_at is not None:
        return f"The rule of this workspace has deleted the checkpoint of step {checkpoint.step}."
    keep = checkpoint.run.config["checkpoint"]["keep"]
    return f"The checkpoint of step {checkpoint.step} is gone: the run keeps its newest {keep}."


def place(artifact: Artifact) -> str:
    """The place of the artifact in the artifact store. The store does not take every letter of a path that a program chooses."""
    if _FITS.fullmatch(artifact.path):
        return f"runs/{artifact.run_id}/{artifact.path}"
    return f"runs/{artifact.run_id}/{ONE}/{hashlib.sha256(artifact.path.encode()).hexdigest()}"


def is_one(artifact: Artifact) -> bool:
    """Whether the artifact in the store is one file, and no folder."""
    return [file["path"] for file in artifact.files] in ([Path(artifact.path).name], [ONE])


def placed(artifact: Artifact) -> Placed:
    return placed_at(place(artifact), artifact.files)


def local_path(artifact: Artifact) -> Path:
    """The artifact's folder on this server; an artifact in the store is fetched once, also if the run's folder has old files.

    Raises StoreAway, StoreLost and OSError.
    """
    return fetched(placed(artifact)) if artifact.files else folder(artifact.run_id) / artifact.path


def download(artifact: Artifact) -> Download:
    """The artifact's files: a folder as a tar, a file as it is. Raises Gone, also for a path that leads out of the run.

    Files in the store are read from there while they are sent, block by block.
    """
    if artifact.removed_at is not None:  # the files may be there for another minute, and go while they are sent
        raise Gone(why_gone(artifact))
    root = folder(artifact.run_id).resolve()
    path = root / artifact.path
    if not path.resolve().is_relative_to(root):
        raise Gone("This artifact does not lie in the folder of its run.")
    name = ascii_name(f"{artifact.run.experiment.name}-run-{artifact.run.number}-{_short(artifact, path)}")
    if not artifact.files:
        return of_path(path, name)
    found = placed(artifact)
    if is_one(artifact):
        file = found.files[0]
        whole = ArchiveStretch(0, file.bytes, source=partial(artifact_store.read, found.of(file), file))
        return Download(name + path.suffix, file.bytes, found.mark[:32], (whole,), "application/octet-stream")
    return sent(found, name)


def _short(artifact: Artifact, path: Path) -> str:
    is_file = path.is_file() or is_one(artifact)
    return path.stem if is_file else path.name
