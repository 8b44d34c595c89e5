"""Aliases and stages of models over the API."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Path, Router, Schema, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page
from webapp.core.requests.openapi import StrictIn

from .. import access as models
from ..models import MARK, ModelAlias, ModelPromotion
from ..parameters import ModelId
from ..schemas import ModelName
from . import access, queries, services

router = Router()
AliasName = Annotated[str, Path(max_length=61, description="With or without its @")]


class AliasOut(Schema):
    name: str
    model: ModelName
    moved_at: datetime


class AliasList(Schema):
    items: list[AliasOut]
    next: str | None


class AliasIn(StrictIn):
    model: int = Field(ge=1, le=2**63 - 1)
    reason: str = Field("", max_length=services.MAX_REASON)
    expected: str | None = Field(
        None,
        max_length=120,
        description="The model that the alias should point at now, by name; empty: the alias should not exist",
    )


class StageIn(StrictIn):
    stage: Literal["", "candidate", "production", "retired"]
    reason: str = Field("", max_length=services.MAX_REASON)


class StageOut(Schema):
    stage: str


class PromotionOut(Schema):
    kind: str = Field(description="moved, removed or stage")
    alias: str = Field(description="Empty if a stage was changed")
    stage: str = Field(description="The new stage; empty if an alias was moved, or the stage was removed")
    model: int | None = Field(description="Null once the model was removed from the list")
    model_name: str = Field(description="The name of the model at that time")
    before: str = Field(description="The model that had the alias before, or the stage before; empty if there was none")
    reason: str
    by: str | None = Field(description="Null once the account was erased")
    at: datetime


class PromotionList(Schema):
    items: list[PromotionOut]
    next: str | None


@router.get("/models/aliases", response=AliasList, summary="Every alias with the model that it points at")
def list_aliases(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    """Aliases are sorted by name."""
    membership = models.may_read(require(request))
    found = page(queries.aliases(membership.workspace_id), cursor, limit, "name")
    return {"items": [_alias(row) for row in found.items], "next": found.next}


@router.get("/models/aliases/{name}", response=AliasOut, summary="The model that an alias points at")
def get_alias(request: HttpRequest, name: AliasName) -> dict[str, Any]:
    return _alias(access.alias_read(require(request), name))


@router.put("/models/aliases/{name}", response=AliasOut, summary="Let an alias point at a model")
def move_alias(request: HttpRequest, name: AliasName, payload: AliasIn) -> dict[str, Any]:
    """Creates the alias if there is none. 409 if `expected` is given and it points elsewhere by now."""
    membership = models.may_write(require(request))
    model = models.model_write(membership, payload.model)
    return _alias(services.move(membership, name, model, reason=payload.reason, expected=payload.expected))


@router.delete("/models/aliases/{name}", response={204: None}, summary="Remove an alias; the model stays")
def remove_alias(request: HttpRequest, name: AliasName) -> Status[None]:
    membership = require(request)
    services.remove(membership, access.alias_write(membership, name))
    return Status(204, None)


@router.put("/models/{int:model_id}/stage", response=StageOut, summary="Set the stage of a model")
def set_stage(request: HttpRequest, model_id: ModelId, payload: StageIn) -> dict[str, Any]:
    membership = require(request)
    model = models.model_write(membership, model_id)
    services.set_stage(membership, model, payload.stage, reason=payload.reason)
    return {"stage": model.stage}


@router.get(
    "/models/promotions", response=PromotionList, summary="Moves of aliases and changes of stages, newest first"
)
def promotions(
    request: HttpRequest, alias: str = "", model: int | None = None, cursor: str | None = None, limit: Limit = 50
) -> dict[str, Any]:
    """`alias` and `model` (an id) narrow it down."""
    membership = models.may_read(require(request))
    row = models.model_read(membership, model) if model is not None else None
    rows = queries.history(membership.workspace_id, name=alias.removeprefix(MARK), model=row)
    found = page(rows, cursor, limit)
    return {"items": [_promotion(each) for each in found.items], "next": found.next}


def _alias(row: ModelAlias) -> dict[str, Any]:
    return {"name": row.name, "model": {"id": row.model.pk, "name": row.model.name}, "moved_at": row.moved_at}


def _promotion(row: ModelPromotion) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "alias": row.name,
        "stage": row.to,
        "model": row.model_id,
        "model_name": row.model_name,
        "before": row.before,
        "reason": row.reason,
        "by": str(row.created_by) if row.created_by else None,
        "at": row.created_at,
    }
