"""A stage's output on disk, with the card that describes it."""

from collections.abc import Mapping

from trainer.contracts import ArtifactData
from trainer.contracts.example import version_digest
from trainer.outputs import About, licence_of, write_output

from .stage import ModelOutput, StageJob


def write_model_output(
    job: StageJob, output: ModelOutput, step: int, metrics: Mapping[str, float], place: str
) -> ArtifactData:
    """Fills `outputs/<place>` of the run's folder. Raises OSError, and OutputInvalid if no model was written."""
    base = job.models.get("base")
    about = About(
        name=output.name,
        role=output.role,
        recipe=job.recipe.name,
        step=step,
        base=job.config.model.name,
        head=output.head,
        config=job.config.model_dump(mode="json"),
        data_digest=version_digest(job.examples),
        metrics=metrics,
        licence=licence_of(base) if base else "",
    )
    return write_output(job.run_dir, place, output.write, about)
