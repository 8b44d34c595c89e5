"""Exports of kept checkpoints: a job of the cluster writes the model, and it is registered."""

import json
from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from pydantic import ValidationError

from trainer.contracts import ArtifactData, ModelSource
from trainer.contracts.storing import Links, Upload
from webapp.accounts.models import Membership
from webapp.core.problems import Conflict, Invalid
from webapp.inference.queries import source
from webapp.weights import services as weights
from webapp.weights.kinds import KINDS, Items, Kind
from webapp.weights.models import WeightsJob
from webapp.weights.states import OVER as JOBS_OVER

from .. import bulk, queries
from ..models import Artifact, Run
from . import artifact_store, artifacts, starting_points

CHECKPOINT = "checkpoint"


def export(membership: Membership, artifact: Artifact) -> WeightsJob:
    """Starts the export of a checkpoint, or finds the one that was started. Raises Conflict if there is none to export."""
    run = artifact.run
    if artifact.role != CHECKPOINT:
        raise Conflict("Only checkpoints can be exported, and this is not a checkpoint.", code="no_checkpoint")
    if not artifacts.is_there(artifact):
        raise Conflict(artifacts.why_gone(artifact), code="gone")
    params = {"run": run.pk, "step": artifact.step, "recipe": run.recipe, "config": run.config}
    if run.start_step:  # its first checkpoint is another run's, whose config may have been another
        params["forked"] = True
    title = f"Export {run.experiment.name}, {run}, step {artifact.step}"
    made = Artifact.objects.filter(run=run, step=artifact.step, registered__isnull=False)
    there = any(row.path.endswith(f"-step-{row.step}") and artifacts.is_there(row) for row in made)
    with transaction.atomic():
        starting_points.keep_checkpoint(artifact)  # until the job can be seen, which keeps the checkpoint
        return weights.start(
            membership.workspace,
            membership.user,
            WeightsJob.Kind.EXPORT,
            title,
            params,
            artifact.digest,
            again=not there,
        )


def under_way(ids: Collection[int]) -> QuerySet[WeightsJob]:
    """Exports of checkpoints of runs with these ids that are not over."""
    jobs = WeightsJob.objects.filter(kind=WeightsJob.Kind.EXPORT, params__run__in=list(ids))
    return jobs.exclude(state__in=JOBS_OVER)


def _run(job: WeightsJob) -> Run:
    """Raises Conflict if the run was deleted: then the job fails, with this reason."""
    runs = Run.objects.with_names().filter(pk=job.params["run"], experiment__workspace_id=job.workspace_id)
    if (run := runs.first()) is None:
        raise Conflict("The run of this checkpoint was deleted.", code="gone")
    return run


def _models(job: WeightsJob) -> dict[str, ModelSource]:
    return {role: source(model) for role, model in queries.models_by_role(_run(job)).items()}


def _items(job: WeightsJob, after: int) -> Items:
    """The examples of the run: the job needs them to make the stages."""
    if after:
        return
    version, position = _run(job).data.pk, -1
    while rows := queries.example_lines(version, position, 500):
        position = rows[-1][0]
        for _, canonical in rows:
            yield json.dumps({"canonical": canonical}, ensure_ascii=False)


@transaction.atomic
def _finish(job: WeightsJob, outcome: dict[str, Any]) -> dict[str, Any]:
    """The outcome with the numbers of the models in the registry. Raises Invalid if the outcome is not that of an export."""
    try:
        found = [ArtifactData.model_validate(each) for each in outcome.get("artifacts", [])]
    except ValidationError as error:
        raise Invalid("The export sent a message that cannot be read.") from error
    if not found:
        raise Invalid("The run has no model to export.")
    run = Run.objects.with_names().select_for_update(of=("self",), no_key=True).get(pk=job.params["run"])
    rows = [bulk.ArtifactRow(int(job.params["step"]), data) for data in found]
    bulk.upsert_artifacts(run.pk, rows)
    artifacts.register(run, rows)
    made = Artifact.objects.filter(run=run, path__in=[row.data.path for row in rows]).exclude(registered=None)
    return {**outcome, "models": list(made.order_by("id").values_list("registered_id", flat=True))}


def _artifacts(job: WeightsJob, name: str) -> Links | None:
    return artifact_store.artifact(_run(job), name)


def _upload(job: WeightsJob, asked: Upload) -> Links:
    return artifact_store.upload(_run(job).pk, asked)


def _memory(job: WeightsJob) -> int | None:
    """The memory of its run, because it loads the checkpoint into the same stage. It computes nothing with it, so this is its most."""
    found = Run.objects.filter(pk=job.params["run"], experiment__workspace_id=job.workspace_id)
    return found.values_list("memory_needed", flat=True).first()


KINDS[WeightsJob.Kind.EXPORT] = Kind(
    _models,
    _items,
    _finish,
    lambda job: str(artifacts.folder(job.params["run"])),
    artifacts=_artifacts,
    upload=_upload,
    memory=_memory,
)
