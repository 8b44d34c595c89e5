"""The model registry over the API."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router, Schema, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.accounts.models import Role
from webapp.core.auditing import audit
from webapp.core.database.paging import Limit, page
from webapp.core.requests.openapi import StrictIn, sends
from webapp.core.storage.archive import respond

from .. import access, queries
from ..folders import files
from ..parameters import ModelId
from ..schemas import ModelName
from ..trials.services import try_again
from . import serializers, services

router = Router()


class ModelRun(Schema):
    id: int
    name: str
    experiment: str
    step: int


class ModelOut(Schema):
    id: int
    name: str
    source: str = Field(description="local, hub or run")
    path: str
    description: str
    facts: dict[str, Any]
    role: str = Field(description="The role that a run trained it for; empty if no run trained it")
    format: str = Field(description="hf (a whole model) or peft (an adapter for its base)")
    head: str = Field(description="lm (writes text) or scalar (scores text)")
    base: ModelName | None
    digest: str
    run: ModelRun | None
    present: bool | None = Field(description="Whether the files of a run's model are there; null for other models")
    stage: str = Field(description="candidate, production, retired, or empty")
    aliases: list[str] = Field(description="Without their @")
    created_at: datetime
    archived_at: datetime | None


class ModelList(Schema):
    items: list[ModelOut]
    next: str | None


class ModelFileOut(Schema):
    path: str
    bytes: int
    digest: str = Field(description="SHA-256")


class ModelFiles(Schema):
    items: list[ModelFileOut]
    next: None = None


class ModelChange(StrictIn):
    name: str | None = Field(None, max_length=120)
    description: str | None = Field(None, max_length=20_000)


class ModelIn(StrictIn):
    name: str = Field(max_length=120)
    source: Literal["local", "hub"] = "local"
    path: str = Field(min_length=1, max_length=500, description="Absolute directory on the server, or hub id")
    description: str = Field("", max_length=20_000)
    base: int | None = Field(
        None,
        ge=1,
        le=2**63 - 1,
        description="For a directory with an adapter: the model on which the adapter was trained",
    )
    head: Literal["", "lm", "scalar"] = Field(
        "",
        description="For a hub id: lm (writes text, the default) or scalar (scores text). The files of a directory say it",
    )


@router.get("/models", response=ModelList, summary="Models that are not archived, newest first")
def list_models(
    request: HttpRequest, cursor: str | None = None, limit: Limit = 50, archived: bool = False
) -> dict[str, Any]:
    rows = queries.models(access.may_read(require(request)).workspace_id, archived=archived)
    found = page(rows, cursor, limit, "-id")
    return {"items": [serializers.model(row) for row in found.items], "next": found.next}


@router.post("/models", response={201: ModelOut}, summary="Register a local directory or a hub id")
def register(request: HttpRequest, payload: ModelIn) -> Status[dict[str, Any]]:
    membership = access.may_write(require(request))
    return Status(201, serializers.model(services.register(membership, **payload.model_dump())))


@router.get("/models/{int:model_id}", response=ModelOut, summary="One model")
def get_model(request: HttpRequest, model_id: ModelId) -> dict[str, Any]:
    return serializers.model(access.model_read(require(request), model_id))


@router.patch("/models/{int:model_id}", response=ModelOut, summary="Rename a model, or describe it")
def change_model(request: HttpRequest, model_id: ModelId, payload: ModelChange) -> dict[str, Any]:
    membership = require(request)
    row = access.model_write(membership, model_id)
    services.change_model(membership, row, name=payload.name, description=payload.description)
    return serializers.model(row)


@router.post("/models/{int:model_id}/archive", response=ModelOut, summary="Archive a model; its files stay")
def archive_model(request: HttpRequest, model_id: ModelId) -> dict[str, Any]:
    membership = require(request)
    row = access.model_write(membership, model_id)
    services.archive_model(membership, row)
    return serializers.model(row)


@router.post("/models/{int:model_id}/restore", response=ModelOut, summary="Restore an archived model")
def restore_model(request: HttpRequest, model_id: ModelId) -> dict[str, Any]:
    membership = require(request)
    row = access.model_write(membership, model_id)
    services.restore_model(membership, row)
    return serializers.model(row)


@router.post("/models/{int:model_id}/trial", response=ModelOut, summary="Try again whether a model can be trained")
def try_model(request: HttpRequest, model_id: ModelId) -> dict[str, Any]:
    """If `facts.trial.state` is refused or not_tried, the trial is removed until a worker has tried the model again."""
    membership = require(request)
    row = access.model_write(membership, model_id)
    try_again(membership, row)
    return serializers.model(row)


@router.get("/models/{int:model_id}/files", response=ModelFiles, summary="The files of a model that a run has trained")
def model_files(request: HttpRequest, model_id: ModelId) -> dict[str, Any]:
    return {"items": files.listed(access.model_read(require(request), model_id))}


@router.get(
    "/models/{int:model_id}/download",
    summary="The folder of a model that a run has trained",
    openapi_extra=sends("application/x-tar", ranges=True),
)
def download_model(request: HttpRequest, model_id: ModelId) -> HttpResponseBase:
    """An uncompressed tar. A download that broke off continues with `Range` (`curl -C -`)."""
    membership = require(request)
    row = access.model_read(membership, model_id)
    found = files.download(row)
    audit.record(membership, membership.user, "model.downloaded", row, name=row.name)
    return respond(request, found)


@router.delete("/models/{int:model_id}", response={204: None}, summary="Remove an unused model from the list")
def delete_model(request: HttpRequest, model_id: ModelId) -> Status[None]:
    membership = require(request, Role.RESEARCHER)
    services.delete(membership, access.model_write(membership, model_id))
    return Status(204, None)
