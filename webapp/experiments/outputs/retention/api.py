"""The rule that deletes checkpoints, over the API, and the mark of a run that keeps its own."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query

from webapp.accounts.access import require
from webapp.accounts.models import Role

from ... import access
from ...parameters import RunId, router, run_of
from . import services
from .models import DAYS, CheckpointRule
from .preview import preview
from .schemas import CheckpointPreviewOut, CheckpointRuleIn, CheckpointRuleOut, KeepCheckpoints

TAGS: list[str] = ["retention"]
Days = Annotated[int, Query(ge=services.LEAST, le=services.MOST)]


@router.get("/retention", response=CheckpointRuleOut, summary="The rule that deletes checkpoints", tags=TAGS)
def retention(request: HttpRequest) -> CheckpointRule:
    return services.rule(require(request, Role.OWNER))


@router.put(
    "/retention", response=CheckpointRuleOut, summary="Switch the rule that deletes checkpoints on or off", tags=TAGS
)
def change_retention(request: HttpRequest, payload: CheckpointRuleIn) -> CheckpointRule:
    """Ask for the preview first. While `on` is false, nothing more is deleted."""
    return services.change(require(request, Role.OWNER), payload.on, payload.days)


@router.get(
    "/retention/preview", response=CheckpointPreviewOut, summary="Checkpoints that a rule would delete now", tags=TAGS
)
def preview_retention(request: HttpRequest, days: Days = DAYS) -> dict[str, Any]:
    """Counts and deletes nothing."""
    found = preview(require(request, Role.OWNER).workspace_id, days)
    kept = [{"checkpoints": count, "why": why} for count, why in found.reasons]
    facts = {name: getattr(found, name) for name in ("days", "runs", "checkpoints", "bytes", "whole")}
    return facts | {"kept": kept}


@router.get(
    "/runs/{run_id}/keep-checkpoints", response=KeepCheckpoints, summary="Whether a run keeps all its checkpoints"
)
def keeps_checkpoints(request: HttpRequest, run_id: RunId) -> dict[str, bool]:
    return {"keep": run_of(request, run_id).keep_checkpoints}


@router.put("/runs/{run_id}/keep-checkpoints", response=KeepCheckpoints, summary="Keep all checkpoints of a run")
def keep_checkpoints(request: HttpRequest, run_id: RunId, payload: KeepCheckpoints) -> dict[str, bool]:
    """A mark that no rule overrules. The run itself still replaces older checkpoints by newer ones, as `checkpoint.keep` says."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    services.mark(membership, run, payload.keep)
    return {"keep": run.keep_checkpoints}
