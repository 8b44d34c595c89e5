"""Launching over the API: check a config, launch a run, fork one; drafts, and what becomes of them."""

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Status

from trainer.config import RECIPES, ConfigInvalid, resolve, upgrade_stored
from webapp.accounts.access import require
from webapp.accounts.models import Membership
from webapp.core.problems import Conflict, Problem

from .. import access, serializers
from .. import schemas as s
from ..lifecycle import services as lifecycle
from ..lifecycle.deleted_runs import deletion_text
from ..models import Run
from ..outputs import trained_on
from ..parameters import LaunchKey, RunId, router
from ..schemas import ExperimentOut
from . import checks, discarding, drafts, expected, memory, services
from .schemas import (
    ConfigCheckIn,
    ConfigCheckOut,
    ExperimentIn,
    ForkIn,
    LaunchedOut,
    LaunchIn,
    RunDraftIn,
    RunDraftOut,
    choice,
)


@router.post(
    "/recipes/{name}/check", response=ConfigCheckOut, summary="Check a config; nothing is launched", tags=["recipes"]
)
def check_config(request: HttpRequest, name: str, payload: ConfigCheckIn) -> dict[str, Any]:
    """The complete config, or 422 with every field that is wrong. With a dataset, it checks all that a launch checks: also the data and
    the names of models and judges; and it tells what would leak, how long the run would take, and what its judges would use."""
    membership = access.may_read(require(request))
    if name not in RECIPES:
        raise Http404("no such recipe")
    if payload.dataset is None:
        config = services.check_config(name, checks.with_model(payload.config, payload.model))
        return {"config": config, "leaks": None, "near": None, "time": None, "judges": None, "warnings": []}
    plan = checks.plan(membership, name, payload.config, choice(payload.dataset), payload.model)
    found = trained_on.leaking(membership.workspace_id, plan.version, name, plan.config)
    return {
        "config": plan.config,
        "leaks": found["leaks"],
        "near": [each.json() for each in found["near"]],
        **_expected(membership, plan),
    }


def _expected(membership: Membership, plan: checks.RunPlan) -> dict[str, Any]:
    workspace, name, config = membership.workspace_id, plan.recipe.name, resolve(plan.recipe.name, plan.config)
    time, use = expected.time(workspace, name, config, plan.model), expected.judges(workspace, name, config)
    source = time.source.pk if time.source else None
    return {
        "time": {"seconds": time.seconds, "run": source, "why": time.how},
        "warnings": _listed(plan.warning),
        "judges": use and {"tokens": use.tokens, "money": use.money, "why": use.how},
    }


def _listed(warning: str) -> list[str]:
    return [warning] if warning else []


def _launched(run: Run) -> dict[str, Any]:
    try:
        warning = memory.warning(resolve(run.recipe, upgrade_stored(run.recipe, run.config)), run.base)
    except ConfigInvalid:  # an older version has launched it
        warning = ""
    return serializers.run(run) | {"warnings": _listed(warning)}


@router.post("/experiments", response={201: ExperimentOut}, summary="Create an experiment", tags=["experiments"])
def create_experiment(request: HttpRequest, payload: ExperimentIn) -> Status[dict[str, Any]]:
    membership = access.may_write(require(request))
    row = services.create_experiment(membership, payload.name, payload.description)
    return Status(201, serializers.experiment(row, 0))


@router.post("/runs", response={201: LaunchedOut}, summary="Launch a run")
def launch(request: HttpRequest, payload: LaunchIn, idempotency_key: LaunchKey = None) -> Status[dict[str, Any]]:
    """422 with every field that is wrong, before anything is queued. `draft`: it is kept in the state `draft`, to be changed and launched
    later."""
    membership = access.may_write(require(request))
    if payload.draft:
        row = drafts.save(membership, _draft(payload.recipe, payload), idempotency_key)
        return Status(201, serializers.run(row) | {"warnings": []})
    run = services.launch(
        membership,
        recipe=payload.recipe,
        config=payload.config,
        dataset=choice(payload.dataset),
        model=payload.model,
        experiment=payload.experiment,
        name=payload.name,
        key=idempotency_key,
        not_before=payload.not_before,
        retries=payload.retries,
        limits=payload.limits.limits(),
    )
    return Status(201, _launched(run))


@router.get("/runs/{run_id}/draft", response=RunDraftOut, summary="A draft and its problems")
def draft(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """409 if the run was launched already."""
    membership = require(request)
    return _shown(membership, access.run_read(membership, run_id))


@router.put("/runs/{run_id}/draft", response=RunDraftOut, summary="Change a draft")
def change_draft(request: HttpRequest, run_id: RunId, payload: RunDraftIn) -> dict[str, Any]:
    """Replaces all that it holds, except the recipe. 409 if the run was launched already."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    return _shown(membership, drafts.change(membership, run, _draft(run.recipe, payload)))


@router.post("/runs/{run_id}/launch", response=LaunchedOut, summary="Launch a draft")
def launch_draft(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """422 with every field that is wrong; it then stays a draft. A run that was launched already is returned as it is."""
    membership = require(request)
    return _launched(drafts.launch(membership, access.run_write(membership, run_id)))


@router.delete("/runs/{run_id}", response={204: None}, summary="Delete a run that is over, or a draft")
def delete(request: HttpRequest, run_id: RunId) -> Status[None]:
    """A draft can be restored for a day. If somebody has deleted the run before, the 404 says who, and when."""
    membership = require(request)
    try:
        run = access.run_write(membership, run_id)
        does = discarding.discard if run.is_draft else lifecycle.delete
        does(membership, run)
    except Http404 as error:
        if told := deletion_text(membership, run_id):
            raise Problem(told, code="not_found", status=404) from error
        raise
    return Status(204, None)


@router.post("/runs/{run_id}/restore", response=s.RunOut, summary="Restore a deleted draft")
def restore_draft(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """A deleted draft can be restored for a day, with its number, tags, notes and history. A second restore changes nothing."""
    membership = access.may_write(require(request))
    discarding.restore(membership, run_id)
    return serializers.run(access.run_write(membership, run_id))


def _draft(recipe: str, payload: LaunchIn | RunDraftIn) -> drafts.RunDraft:
    return drafts.RunDraft(
        recipe=recipe,
        config=payload.config,
        dataset=choice(payload.dataset),
        model=payload.model,
        experiment=payload.experiment,
        name=payload.name,
        not_before=payload.not_before,
        retries=payload.retries,
        limits=payload.limits.limits(),
    )


def _shown(membership: Membership, run: Run) -> dict[str, Any]:
    if not run.is_draft:
        raise Conflict("This run was launched: there is no draft any more.", "not_a_draft")
    found = [{"path": each.path, "message": each.message} for each in drafts.problems(membership, run)]
    named = {name: value for name, value in (run.draft or {}).items() if value is not None}
    return {"run": serializers.run(run), "dataset": named, "problems": found}


@router.post("/runs/{run_id}/fork", response={201: LaunchedOut}, summary="Run again with changes")
def fork(
    request: HttpRequest,
    run_id: RunId,
    payload: ForkIn,
    idempotency_key: LaunchKey = None,
) -> Status[dict[str, Any]]:
    membership = require(request)
    new = services.fork(
        membership,
        access.run_write(membership, run_id),
        overrides=payload.config,
        dataset=choice(payload.dataset) if payload.dataset is not None else None,
        model=payload.model,
        experiment=payload.experiment,
        name=payload.name,
        start_step=payload.start_step,
        key=idempotency_key,
        not_before=payload.not_before,
        retries=payload.retries,
        limits=payload.limits.limits(),
    )
    return Status(201, _launched(new))
