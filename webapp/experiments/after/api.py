"""Chains over the API: what is launched once a run has finished, or once a project is settled."""

from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Path, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.annotation import access as projects

from .. import access as runs
from ..launch.schemas import choice
from ..models import ChainStep
from ..parameters import LaunchKey, RunId, router, run_of
from . import access, project_steps, queries, services
from .schemas import ChainOut, ChainStepIn, ChainStepOut, SettledStepIn, SettledStepOut, SettledSteps

ProjectId = Path[Annotated[int, Field(ge=1, lt=2**63)]]


@router.get(
    "/runs/{run_id}/chain", response=ChainOut, summary="The chain of a run: what came before it, what waits for it"
)
def chain(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """Each step follows the run or step for which it waits."""
    run = run_of(request, run_id)
    steps = [queries.node_json(node) for node in queries.chain(run) if node.step]
    return {"first": queries.first_of(run).pk, "items": steps}


@router.post(
    "/runs/{run_id}/chain",
    response={201: ChainStepOut},
    summary="Launch a run or an evaluation once a run has finished",
)
def add(
    request: HttpRequest, run_id: RunId, payload: ChainStepIn, idempotency_key: LaunchKey = None
) -> Status[dict[str, Any]]:
    """Checked now as the launch itself would be: 422 with every field that is wrong."""
    membership = runs.may_write(require(request))
    run, behind = access.behind(membership, run_id, payload.behind or 0)
    if why := run.not_here:
        raise why
    asked = services.StepAsked(
        kind=payload.kind,
        recipe=payload.recipe,
        config=payload.config,
        dataset=services.dataset_of(run, behind) if payload.dataset is None else choice(payload.dataset),
        experiment=payload.experiment,
        name=payload.name,
        with_output=payload.with_output,
        judges=payload.judges,
        also=tuple(payload.also),
        also_steps=tuple(payload.also_steps),
    )
    step = services.add(membership, run, asked, behind, idempotency_key)
    return Status(201, queries.node_json(queries.ChainNode(step=step, why=queries.waiting_reason(step))))


@router.delete("/runs/{run_id}/chain/{step_id}", response=ChainStepOut, summary="Cancel a step that waits")
def cancel(request: HttpRequest, run_id: RunId, step_id: RunId) -> dict[str, Any]:
    """Cancels the step and those after it. 409 if it was launched or refused."""
    membership = require(request)
    run, step = access.step_write(membership, run_id, step_id)
    step = services.cancel(membership, run, step)
    return queries.node_json(queries.ChainNode(step=step, why=queries.waiting_reason(step)))


@router.get("/projects/{project_id}/then", response=SettledSteps, summary="Runs that wait until a project is settled")
def settled_steps(request: HttpRequest, project_id: ProjectId) -> dict[str, Any]:
    """Newest first, also those that were launched, refused or cancelled."""
    membership = runs.may_read(require(request))
    project = projects.project_read(membership, project_id)
    missing = project_steps.why_not(project)
    return {
        "settled": not missing,
        "why_not": missing,
        "items": [_step(row, missing) for row in project_steps.steps(project)],
    }


@router.post(
    "/projects/{project_id}/then", response={201: SettledStepOut}, summary="Launch a run once a project is settled"
)
def add_settled(
    request: HttpRequest, project_id: ProjectId, payload: SettledStepIn, idempotency_key: LaunchKey = None
) -> Status[dict[str, Any]]:
    """Once every task has its answers and no disagreement or single answer waits for a decision, the answers are published, and the run
    trains on that version, in the caller's name. Decisions do not count if the project publishes each answer by itself. If the run cannot
    be launched then, it says why."""
    membership = runs.may_write(require(request))
    project = projects.project_write(membership, project_id)
    like = runs.run_write(membership, payload.run)
    step = project_steps.add(membership, project, like, payload.experiment, payload.name, idempotency_key)
    return Status(201, _step(step, project_steps.why_not(project)))


@router.delete(
    "/projects/{project_id}/then/{step_id}", response=SettledStepOut, summary="Cancel a run that waits for a project"
)
def cancel_settled(request: HttpRequest, project_id: ProjectId, step_id: RunId) -> dict[str, Any]:
    """409 if it was launched or refused."""
    membership = runs.may_write(require(request))
    project = projects.project_write(membership, project_id)
    step = project_steps.cancel(membership, project, step_id)
    if step is None:
        raise Http404("no such step")
    return _step(step, project_steps.why_not(project))


def _step(step: ChainStep, missing: str) -> dict[str, Any]:
    return {
        "id": step.pk,
        "name": str(step),
        "recipe": step.asked["recipe"],
        "like": step.asked["like"],
        "experiment": step.asked["experiment"],
        "state": step.state,
        "reason": project_steps.waiting_reason(step, missing),
        "run": step.run_id,
        "created_at": step.created_at,
    }
