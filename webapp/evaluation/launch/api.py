"""Evaluations over the API: found, started, moved, named, deleted. Reading needs the role reviewer, changing anything researcher."""

from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Router, Status

from webapp.accounts.access import require
from webapp.accounts.models import Membership
from webapp.core.background.priorities import Priority
from webapp.core.database.paging import Limit, page
from webapp.core.forms.model_schemas import schema_of
from webapp.core.problems import Invalid
from webapp.core.requests import idempotency
from webapp.core.requests.strict_query import OneOf
from webapp.core.text.texts import RenameIn
from webapp.datasets.api.references import find

from .. import access, queries, serializers
from .. import schemas as s
from ..models import Evaluation, Recording
from ..parameters import EvaluationId, IdempotencyKey
from ..recipes import RECIPES
from . import services

router = Router()
State = Annotated[str, OneOf(tuple(Evaluation.State.values))]
RecipeName = Annotated[str, OneOf(tuple(RECIPES))]


@router.get("/evaluations/recipes", response=s.EvaluationRecipeList, summary="The recipes of evaluations")
def recipes(request: HttpRequest) -> dict[str, Any]:
    access.may_read(require(request))
    return {"items": list(RECIPES.values()), "next": None}


@router.get("/evaluations/recipes/{name}/schema", response=dict[str, Any], summary="JSON Schema of a recipe's config")
def recipe_schema(request: HttpRequest, name: str) -> dict[str, Any]:
    access.may_read(require(request))
    if name not in RECIPES:
        raise Http404("no such recipe")
    return schema_of(RECIPES[name].schema)


@router.get("/evaluations", response=s.EvaluationList, summary="Evaluations, newest first")
def evaluations(
    request: HttpRequest,
    cursor: str | None = None,
    limit: Limit = 50,
    state: State | None = None,
    recipe: RecipeName | None = None,
) -> dict[str, Any]:
    membership = access.may_read(require(request))
    found = page(queries.filtered(membership.workspace_id, state=state or "", recipe=recipe or ""), cursor, limit)
    known = queries.headlines([row.pk for row in found.items])
    items = [serializers.evaluation(row, headline=known.get(row.pk), full=False) for row in found.items]
    return {"items": items, "next": found.next}


@router.post("/evaluations", response={201: s.EvaluationFull}, summary="Start an evaluation")
def create(
    request: HttpRequest, payload: s.EvaluationIn, idempotency_key: IdempotencyKey = None
) -> Status[dict[str, Any]]:
    """Answers 422 with every wrong field before anything is queued."""
    membership = access.may_write(require(request))
    if payload.recipe not in RECIPES:
        raise Invalid("There is no such recipe.", {"recipe": f"must be one of {', '.join(RECIPES)}"})
    row = services.create(
        membership,
        recipe=payload.recipe,
        config=payload.config,
        dataset=None if payload.dataset is None else find(membership.workspace_id, payload.dataset),
        recording=_recording(membership, payload.recording),
        name=payload.name,
        key=idempotency.key(idempotency_key, payload.model_dump()),
    )
    return Status(201, serializers.evaluation(row))


@router.get("/evaluations/{int:evaluation_id}", response=s.EvaluationFull, summary="One evaluation with its results")
def evaluation(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    return serializers.evaluation(access.evaluation_read(require(request), evaluation_id))


@router.patch("/evaluations/{int:evaluation_id}", response=s.EvaluationFull, summary="Rename an evaluation")
def rename(request: HttpRequest, evaluation_id: EvaluationId, payload: RenameIn) -> dict[str, Any]:
    membership = require(request)
    return serializers.evaluation(
        services.rename(membership, access.evaluation_write(membership, evaluation_id), payload.name)
    )


@router.post(
    "/evaluations/{int:evaluation_id}/priority",
    response=s.EvaluationFull,
    summary="Change the priority of an evaluation's jobs",
)
def priority(request: HttpRequest, evaluation_id: EvaluationId, payload: s.EvaluationPriorityIn) -> dict[str, Any]:
    """The priority orders the workspace's work in the line. Work under way is not interrupted. 409 if the evaluation is over."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    return serializers.evaluation(services.prioritise(membership, row, Priority[payload.priority.upper()]))


@router.delete("/evaluations/{int:evaluation_id}", response={204: None}, summary="Delete an evaluation that is over")
def delete(request: HttpRequest, evaluation_id: EvaluationId) -> Status[None]:
    membership = require(request)
    services.delete(membership, access.evaluation_write(membership, evaluation_id))
    return Status(204, None)


@router.post(
    "/evaluations/{int:evaluation_id}/pause", response=s.EvaluationFull, summary="Pause an evaluation; nothing is lost"
)
def pause(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    return _move(request, evaluation_id, Evaluation.State.PAUSED)


@router.post(
    "/evaluations/{int:evaluation_id}/resume",
    response=s.EvaluationFull,
    summary="Resume an evaluation after a pause or failure",
)
def resume(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    return _move(request, evaluation_id, Evaluation.State.QUEUED)


@router.post(
    "/evaluations/{int:evaluation_id}/cancel", response=s.EvaluationFull, summary="Cancel an evaluation for good"
)
def cancel(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    return _move(request, evaluation_id, Evaluation.State.CANCELLED)


@router.post(
    "/evaluations/{int:evaluation_id}/rerun", response={201: s.EvaluationFull}, summary="Run an evaluation again"
)
def rerun(
    request: HttpRequest, evaluation_id: EvaluationId, resample: bool = False, idempotency_key: IdempotencyKey = None
) -> Status[dict[str, Any]]:
    """Runs the stored config again. Judges' stored answers are used, unless `resample` asks for new samples; the earlier ones are kept."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    row = services.rerun(membership, row, idempotency_key, resample=resample)
    return Status(201, serializers.evaluation(row))


def _move(request: HttpRequest, evaluation_id: int, to: str) -> dict[str, Any]:
    membership = require(request)
    return serializers.evaluation(services.move(membership, access.evaluation_write(membership, evaluation_id), to))


def _recording(membership: Membership, recording_id: int | None) -> Recording | None:
    if recording_id is None:
        return None
    found = queries.recordings(membership.workspace_id).filter(id=recording_id).first()
    if found is None:
        raise Invalid("There is no such recording.", {"recording": "this workspace has no such recording"})
    return found
