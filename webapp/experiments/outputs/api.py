"""The outputs of a run, over the API: artifacts, models, judges."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Status

from webapp.accounts.access import require
from webapp.core.auditing import audit
from webapp.core.database.paging import Limit, page
from webapp.core.requests.openapi import sends
from webapp.core.storage.archive import respond
from webapp.inference.access import model_write
from webapp.judging.judges.schemas import JudgeVersionOut
from webapp.judging.models import JudgeVersion
from webapp.weights.api import WeightsJobOut
from webapp.weights.models import WeightsJob

from .. import access
from ..models import Artifact
from ..parameters import RunId, router, run_of
from . import artifacts, exporting, serializers, trained_judges
from .schemas import ArtifactList, TrainedJudgeIn


@router.get("/runs/{run_id}/artifacts", response=ArtifactList, summary="Checkpoints and models of a run")
def list_artifacts(request: HttpRequest, run_id: RunId, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    """`present` is false if the files are gone: a run keeps only its newest checkpoints."""
    rows = Artifact.objects.filter(run=run_of(request, run_id)).select_related("registered")
    found = page(rows, cursor, limit)
    return {"items": [serializers.artifact(row, artifacts.is_there(row)) for row in found.items], "next": found.next}


@router.get(
    "/runs/{run_id}/artifacts/{artifact_id}/download",
    summary="The files of an artifact",
    openapi_extra=sends("application/x-tar", "application/octet-stream", ranges=True),
)
def download_artifact(request: HttpRequest, run_id: RunId, artifact_id: RunId) -> HttpResponseBase:
    """A folder comes as an uncompressed tar. A download that broke off continues with `Range` (`curl -C -`)."""
    membership = require(request)
    row = access.artifact_read(membership, run_id, artifact_id)
    found = artifacts.download(row)
    audit.record(membership, membership.user, "artifact.downloaded", row, run=run_id)
    return respond(request, found)


@router.post(
    "/runs/{run_id}/artifacts/{artifact_id}/export",
    response={201: WeightsJobOut},
    summary="Export a kept checkpoint as a registered model",
)
def export_artifact(request: HttpRequest, run_id: RunId, artifact_id: RunId) -> Status[WeightsJob]:
    """A job of the cluster does it: follow it under `/weights-jobs`. 409 if the checkpoint is gone."""
    membership = access.may_write(require(request))
    return Status(201, exporting.export(membership, access.artifact_read(membership, run_id, artifact_id)))


@router.post(
    "/models/{model_id}/judge",
    response={201: JudgeVersionOut},
    summary="Use a trained judge or rubric writer as a judge",
    tags=["judges"],
)
def model_as_judge(request: HttpRequest, model_id: RunId, payload: TrainedJudgeIn) -> Status[JudgeVersion]:
    """A judge with the prompt and the reader that the run trained the model with, and an endpoint with its weights. What was
    made before is answered again. 409 if the model is not an output of a run that trains judges, or if its files are gone."""
    membership = require(request)
    return Status(201, trained_judges.use(membership, model_write(membership, model_id), payload.name))
