"""Launching over the API: check a config, launch a run, fork one."""

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Status

from trainer.config import RECIPES
from webapp.accounts.access import require

from .. import access, serializers
from .. import schemas as s
from ..outputs import trained_on
from ..parameters import LaunchKey, RunId, router
from ..schemas import ExperimentOut
from . import checks, services
from .schemas import ConfigCheckIn, ConfigCheckOut, ExperimentIn, ForkIn, LaunchIn, choice


@router.post(
    "/recipes/{name}/check", response=ConfigCheckOut, summary="Check a config, launch nothing", tags=["recipes"]
)
def check_config(request: HttpRequest, name: str, payload: ConfigCheckIn) -> dict[str, Any]:
    """The complete config, or 422 with every field that is wrong. With a dataset, it checks all that a launch checks: also the data and
    the names of models and judges; and it tells what would leak."""
    membership = access.may_read(require(request))
    if name not in RECIPES:
        raise Http404("no such recipe")
    if payload.dataset is None:
        return {"config": services.check_config(name, payload.config), "leaks": None, "near": None}
    plan = checks.plan(membership, name, payload.config, choice(payload.dataset), None)
    found = trained_on.leaking(membership.workspace_id, plan.version, name, plan.config)
    return {"config": plan.config, "leaks": found["leaks"], "near": [each.json() for each in found["near"]]}


@router.post("/experiments", response={201: ExperimentOut}, summary="Make an experiment", tags=["experiments"])
def create_experiment(request: HttpRequest, payload: ExperimentIn) -> Status[dict[str, Any]]:
    membership = access.may_write(require(request))
    row = services.create_experiment(membership, payload.name, payload.description)
    return Status(201, serializers.experiment(row, 0))


@router.post("/runs", response={201: s.RunOut}, summary="Launch a run")
def launch(request: HttpRequest, payload: LaunchIn, idempotency_key: LaunchKey = None) -> Status[dict[str, Any]]:
    """422 with every field that is wrong, before anything is queued."""
    run = services.launch(
        access.may_write(require(request)),
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
    return Status(201, serializers.run(run))


@router.post("/runs/{run_id}/fork", response={201: s.RunOut}, summary="Run again with changes")
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
    return Status(201, serializers.run(new))
