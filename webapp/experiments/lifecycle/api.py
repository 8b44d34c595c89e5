"""Changes to a run after its launch, over the API."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from webapp.accounts.access import require
from webapp.core.text.texts import RenameIn

from .. import access, serializers
from .. import schemas as s
from ..models import Run
from ..parameters import RunId, router
from ..rewards.budgets import KEEP
from ..rewards.schemas import BudgetIn
from . import early_stop, schedule, services, spending, time_limit, token_limit
from .schemas import ExtendIn, PriorityIn, ScheduleIn, StopEarlyIn, TimeLimitIn, TokenLimitIn, TokensOut


@router.patch("/runs/{run_id}", response=s.RunOut, summary="Rename a run")
def rename(request: HttpRequest, run_id: RunId, payload: RenameIn) -> dict[str, Any]:
    membership = require(request)
    return serializers.run(services.rename(membership, access.run_write(membership, run_id), payload.name))


@router.post("/runs/{run_id}/stop", response=s.RunOut, summary="Save and stop a run")
def stop(request: HttpRequest, run_id: RunId, now: bool = False) -> dict[str, Any]:
    """The run gives up its present step within one micro-batch, and saves the steps that are done. Stopping a run that is over changes
    nothing. `now`: the run ends without saving, so the steps since its last checkpoint are lost; also if it is stopping already."""
    membership = require(request)
    does = services.stop_now if now else services.stop
    return serializers.run(does(membership, access.run_write(membership, run_id)))


@router.post("/runs/{run_id}/pause", response=s.RunOut, summary="Save and pause a run")
def pause(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """As with a stop, the run gives up its present step and saves. It gives its place to others until it is resumed; it is not over. Pausing twice changes nothing. 409 if it is over or
    stopping."""
    membership = require(request)
    return serializers.run(services.pause(membership, access.run_write(membership, run_id)))


@router.post(
    "/runs/{run_id}/resume", response=s.RunOut, summary="Resume a run from its last checkpoint, or begin it again"
)
def resume(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """A run without a checkpoint begins again at its first step. 409 unless the run is paused, stopped or failed."""
    membership = require(request)
    return serializers.run(services.resume(membership, access.run_write(membership, run_id)))


@router.post("/runs/{run_id}/extend", response=s.RunOut, summary="Extend a run to more steps")
def extend(request: HttpRequest, run_id: RunId, payload: ExtendIn) -> dict[str, Any]:
    """The run must be finished or stopped; it continues from its last checkpoint. 409 if its model is in use, or no checkpoint is kept."""
    membership = require(request)
    return serializers.run(services.extend(membership, access.run_write(membership, run_id), payload.steps))


@router.post("/runs/{run_id}/priority", response=s.RunOut, summary="Change the priority of a run")
def priority(request: HttpRequest, run_id: RunId, payload: PriorityIn) -> dict[str, Any]:
    """The priority orders the runs of the workspace, now and every time the run waits again. Runs that are running already are not
    interrupted."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    return serializers.run(services.prioritise(membership, run, Run.Priority[payload.priority.upper()]))


@router.post("/runs/{run_id}/limit", response=s.RunOut, summary="Limit the time of a run")
def limit(request: HttpRequest, run_id: RunId, payload: TimeLimitIn) -> dict[str, Any]:
    """The limit is for all attempts together, without the time in the line. At the limit the run saves and stops,
    and is resumed only with a new limit (409, `time_limit`). 422 if that much is used already."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    wanted = None if payload.seconds is None else timedelta(seconds=payload.seconds)
    return serializers.run(time_limit.change(membership, run, wanted, timezone.now()))


@router.post("/runs/{run_id}/tokens", response=s.RunOut, summary="Limit the tokens that a run may generate")
def limit_tokens(request: HttpRequest, run_id: RunId, payload: TokenLimitIn) -> dict[str, Any]:
    """The limit is for all attempts together and counts every token that the run's own model writes, also in evaluations. At the limit the
    run stops with a checkpoint, and is resumed only with a new limit (409, `token_limit`). 422 if that much is used already; 409
    (`no_tokens`) for a recipe that samples no responses."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    return serializers.run(token_limit.change(membership, run, payload.tokens))


@router.get("/runs/{run_id}/tokens", response=TokensOut, summary="The tokens that a run has generated, and their limit")
def tokens(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """Steps that have ended count, in all attempts; a step that was repeated after a resume counts once."""
    return token_limit.shown(access.run_read(require(request), run_id))


@router.post("/runs/{run_id}/early", response=s.RunOut, summary="Stop a run once a metric no longer improves")
def stop_early(request: HttpRequest, run_id: RunId, payload: StopEarlyIn) -> dict[str, Any]:
    """The run stops with a checkpoint once the last `patience` values of the metric are not better, by more than `min_delta`, than the best
    before them. It is resumed only with another rule (409, `stop_early`). 422 if it would stop at once."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    rule = payload.stop_early.rule() if payload.stop_early else None
    return serializers.run(early_stop.change(membership, run, rule))


@router.post("/runs/{run_id}/budget", response=s.RunOut, summary="Limit the spending of a run's judges")
def spending_limit(request: HttpRequest, run_id: RunId, payload: BudgetIn) -> dict[str, Any]:
    """The limit is for all judges together. At the limit the run stops with a checkpoint, and is resumed only with a new limit (409,
    `spending_limit`). 422 if that much is used already. A judge may have its own budget, for which the run waits instead."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    given = payload.dict(exclude_unset=True)
    money = given.get("budget_money", KEEP)
    tokens = given.get("budget_tokens", KEEP)
    amount = Decimal(str(money)) if isinstance(money, float) else money
    return serializers.run(spending.change(membership, run, tokens, amount))


@router.post("/runs/{run_id}/schedule", response=s.RunOut, summary="Set the earliest start of a run")
def start_not_before(request: HttpRequest, run_id: RunId, payload: ScheduleIn) -> dict[str, Any]:
    """Sets when a run that waits, is paused or is over may start: until then it takes no place. With null it waits like any other. 422 for
    a time that has passed, 409 if it has started."""
    membership = require(request)
    return serializers.run(schedule.change(membership, access.run_write(membership, run_id), payload.not_before))
