"""Repeated runs over the API."""

from datetime import UTC
from typing import Any

from django.http import HttpRequest
from ninja import Status

from webapp.accounts.access import require

from .. import access
from ..parameters import LaunchKey, RunId, router
from . import queries, services
from .rhythm import Rhythm
from .schemas import RepeatIn, RepeatOut, RepeatsOut


@router.get("/repeats", response=RepeatsOut, summary="Runs that are launched again by the clock")
def repeats(request: HttpRequest) -> dict[str, Any]:
    """All repeats of the workspace, the newest one first."""
    return {"items": [queries.repeat_json(row) for row in queries.repeats(require(request))]}


@router.post("/runs/{run_id}/repeats", response={201: RepeatOut}, summary="Launch a run again by the clock")
def add_repeat(
    request: HttpRequest, run_id: RunId, payload: RepeatIn, idempotency_key: LaunchKey = None
) -> Status[dict[str, Any]]:
    """Each time a new run with the same config is launched in the caller's name, unless the one before it is not over."""
    membership = access.may_write(require(request))
    given = payload.dict()
    ends_at = given.pop("ends_at")
    if ends_at is not None and ends_at.tzinfo is None:
        ends_at = ends_at.replace(tzinfo=UTC)
    newest = given.pop("newest_data")
    asked = services.RepeatAsked(Rhythm(**given), ends_at, newest)
    row = services.add(membership, access.run_write(membership, run_id), asked, idempotency_key)
    return Status(201, queries.repeat_json(queries.repeat_write(membership, row.pk)))


@router.post("/repeats/{repeat_id}/pause", response=RepeatOut, summary="Pause a repeated run")
def pause_repeat(request: HttpRequest, repeat_id: RunId) -> dict[str, Any]:
    """Runs that were launched continue."""
    membership = require(request)
    services.pause(membership, queries.repeat_write(membership, repeat_id))
    return queries.repeat_json(queries.repeat_write(membership, repeat_id))


@router.post("/repeats/{repeat_id}/resume", response=RepeatOut, summary="Resume a paused repeated run")
def resume_repeat(request: HttpRequest, repeat_id: RunId) -> dict[str, Any]:
    """Times during the pause are left out."""
    membership = require(request)
    services.resume(membership, queries.repeat_write(membership, repeat_id))
    return queries.repeat_json(queries.repeat_write(membership, repeat_id))


@router.delete("/repeats/{repeat_id}", response={204: None}, summary="Delete a repeated run")
def remove_repeat(request: HttpRequest, repeat_id: RunId) -> Status[None]:
    """The runs that it has launched stay."""
    membership = require(request)
    services.remove(membership, queries.repeat_write(membership, repeat_id))
    return Status(204, None)
