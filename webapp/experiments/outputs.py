"""What a run has trained, as rows of the registry; and what is still in its folder."""

from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

from trainer.config import RECIPES
from trainer.contracts import ModelFacts
from webapp.core.archive import Download, Gone, ascii_name, of_path
from webapp.inference import services as registry
from webapp.inference.models import Endpoint, RegisteredModel

from .bulk import ArtifactRow
from .models import Artifact, Run, RunSlot


def folder(run_id: int) -> Path:
    return settings.VAR / "runs" / str(run_id)


def register(run: Run, rows: Iterable[ArtifactRow]) -> None:
    """Every model among the artifacts gets a row of the registry, or renews the one it has. Under the lock of the run."""
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
            base=run.model,
        )
        artifact.save(update_fields=["registered"])


def _ending(run: Run, artifact: Artifact, facts: ModelFacts) -> str:
    """`-run-<n>`; what is not the recipe's first output, or not of the run's end, says so behind it."""
    recipe = RECIPES.get(run.recipe)
    first = recipe.outputs[0].role if recipe and recipe.outputs else facts.role
    other = "" if facts.role == first else f"-{facts.name}"
    earlier = "" if artifact.path == f"outputs/{facts.name}" else f"-step-{artifact.step}"
    return f"-run-{run.number}{other}{earlier}"


def user_of(run: Run) -> str:
    """Who uses a model that this run has trained, in words: a run, a model on top of it, or an endpoint. Empty: nobody."""
    mine = RegisteredModel.objects.filter(artifact__run=run)
    if slot := RunSlot.objects.filter(model__in=mine).exclude(run=run).select_related("run__experiment").first():
        return f"{slot.run} of {slot.run.experiment.name}"
    if endpoint := Endpoint.objects.filter(registered_model__in=mine).first():
        return f"The endpoint {endpoint}"
    derived = RegisteredModel.objects.filter(base__in=mine).first()
    return f"The model {derived}" if derived else ""


def is_there(artifact: Artifact) -> bool:
    """Whether the files still lie in the run's folder: of the checkpoints only the newest are kept."""
    return (folder(artifact.run_id) / artifact.path).exists()


def download(artifact: Artifact) -> Download:
    """The artifact's files: a folder as a tar, a file as it is. Raises Gone, also for a path that leads out of the run."""
    root = folder(artifact.run_id).resolve()
    path = root / artifact.path
    if not path.resolve().is_relative_to(root):
        raise Gone("This artifact does not lie in the folder of its run.")
    name = f"{artifact.run.experiment.name}-run-{artifact.run.number}-{path.stem if path.is_file() else path.name}"
    return of_path(path, ascii_name(name))
