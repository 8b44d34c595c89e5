"""Chains over the API: what is launched once a run has finished."""

from typing import Any

from django.http import HttpRequest
from ninja import Status

from webapp.accounts.access import require

from .. import access as runs
from ..launch.schemas import choice
from ..models import LoggedElsewhere
from ..parameters import LaunchKey, RunId, router, run_of
from . import access, queries, services
from .schemas import ChainOut, ChainStepIn, ChainStepOut


@router.get(
    "/runs/{run_id}/chain", response=ChainOut, summary="The chain of a run: what came before it, what waits for it"
)
def chain(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """Each step follows the run or step for which it waits."""
    root = queries.chain(run_of(request, run_id))
    return {"first": root.run and root.run.pk, "items": [queries.told(node) for node in queries.flat(root)]}


@router.post("/runs/{run_id}/chain", response={201: ChainStepOut}, summary="Launch something once a run has finished")
def add(
    request: HttpRequest, run_id: RunId, payload: ChainStepIn, idempotency_key: LaunchKey = None
) -> Status[dict[str, Any]]:
    """Checked now as the launch itself would be: 422 with every field that is wrong."""
    membership = runs.may_write(require(request))
    run, behind = access.behind(membership, run_id, payload.behind or 0)
    if run.is_logged:
        raise LoggedElsewhere
    asked = services.StepAsked(
        kind=payload.kind,
        recipe=payload.recipe,
        config=payload.config,
        dataset=services.dataset_of(run, behind) if payload.dataset is None else choice(payload.dataset),
        experiment=payload.experiment,
        name=payload.name,
        with_output=payload.with_output,
        judges=payload.judges,
    )
    step = services.add(membership, run, asked, behind, idempotency_key)
    return Status(201, queries.told(queries.ChainNode(step=step, why=queries.why(step))))


@router.delete("/runs/{run_id}/chain/{step_id}", response=ChainStepOut, summary="Take back a step that waits")
def cancel(request: HttpRequest, run_id: RunId, step_id: RunId) -> dict[str, Any]:
    """Cancels the step and those after it. 409 if it was launched or refused."""
    membership = require(request)
    run, step = access.step_write(membership, run_id, step_id)
    step = services.cancel(membership, run, step)
    return queries.told(queries.ChainNode(step=step, why=queries.why(step)))
