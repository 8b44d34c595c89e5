"""Writes sweeps: launched, stopped, resumed, made longer. `rounds`, in the workers, decides about their trials."""

from contextlib import suppress
from dataclasses import asdict

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone

from trainer.config import ConfigInvalid, FieldProblem
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict
from webapp.core.requests import idempotency
from webapp.core.tasks import enqueue
from webapp.webhooks.services import announce

from .. import names
from ..launch import checks
from ..lifecycle import services as lifecycle
from ..models import OVER, Experiment, Run, Sweep
from . import checking, outcomes, space
from .space import SweepAxis

State = Sweep.State
ADVANCE = "workers.sweeps.advance"
SOURCES: dict[str, frozenset[str]] = {
    State.RUNNING: frozenset({State.STOPPED, State.FAILED, State.FINISHED}),  # a sweep that is over continues
    State.STOPPING: frozenset({State.RUNNING}),
    State.STOPPED: frozenset({State.STOPPING}),
    State.FINISHED: frozenset({State.RUNNING}),
    State.FAILED: frozenset({State.RUNNING}),
}
"""target -> the states from which a sweep may come to it"""


def launch(membership: Membership, wish: checking.Wish, key: str | None = None) -> Sweep:
    """Checks every value, then writes the sweep; workers launch its trials. The same `key` launches once.

    Raises ConfigInvalid with every field that is wrong, Invalid for a name, KeyReused if the key came with another request.
    """
    # keys of before runs could train together, and have limits, stay what they were
    asked = idempotency.key(
        key, *(str(value) for name, value in vars(wish).items() if value or name not in ("together", "limits"))
    )
    if earlier := idempotency.row_of_key(_mine(membership), asked):
        return earlier
    found = checking.check(membership, wish)
    if found.problems or found.plan is None:
        raise ConfigInvalid(found.problems)
    name = names.optional_name(wish.name, "name") or f"Sweep of {', '.join(axis.path for axis in found.axes)}"[:120]
    title = names.name(wish.experiment or found.plan.recipe.title, "experiment")
    try:
        with transaction.atomic():
            checks.frozen(membership, found.plan.version)
            experiment, _ = Experiment.objects.get_or_create(workspace=membership.workspace, name=title)
            sweep = Sweep.objects.create(
                workspace=membership.workspace,
                experiment=experiment,
                name=name,
                created_by=membership.user,
                launch_key=asked and asked.text,
                launch_digest=asked.digest if asked else "",
                **checking.sweep_fields(found, wish),
            )
            audit.record(membership, membership.user, "sweep.launch", sweep, name=name, method=sweep.method)
            announce(membership.workspace_id, "sweep.started", _facts(sweep), by=membership.user_id)
            enqueue(ADVANCE, sweep.pk)
    except IntegrityError:  # two requests with one key at the same moment: the other one made it
        if earlier := idempotency.made_meanwhile(Sweep, membership.user, _mine(membership), asked):
            return earlier
        raise
    return sweep


def _mine(membership: Membership) -> QuerySet[Sweep]:
    return Sweep.objects.filter(workspace=membership.workspace, created_by=membership.user)


def stop(membership: Membership, sweep: Sweep) -> Sweep:
    """Launches no more trials and stops those under way, each of their runs as its own Stop would. Twice is harmless."""
    with transaction.atomic():
        row = Sweep.objects.select_for_update().get(pk=sweep.pk)
        if not row.is_over and row.state != State.STOPPING:
            move(row, State.STOPPING)
            audit.record(membership, membership.user, "sweep.stop", row)
    for run in Run.objects.with_names().filter(swept__trial__sweep=sweep).exclude(state__in=OVER).order_by("pk"):
        with suppress(Http404):  # it has ended, and somebody has deleted it; the others are stopped
            lifecycle.stop(membership, run)
    enqueue(ADVANCE, sweep.pk)
    sweep.refresh_from_db()
    return sweep


def resume(membership: Membership, sweep: Sweep) -> Sweep:
    """Continues with the trials that are left. Raises Conflict if it is under way, or nothing is left."""
    with transaction.atomic():
        row = Sweep.objects.select_for_update().get(pk=sweep.pk)
        if row.state not in (State.STOPPED, State.FAILED):
            raise Conflict(f"Only stopped and failed sweeps can be resumed; this one is {row.state}.", "not_resumable")
        if row.trials.count() >= row.wanted:
            raise Conflict(
                "All trials of the sweep have been launched. Add trials, or resume single runs.", "nothing_left"
            )
        move(row, State.RUNNING)
        audit.record(membership, membership.user, "sweep.resume", row)
        enqueue(ADVANCE, row.pk)
    sweep.refresh_from_db()
    return sweep


def add(membership: Membership, sweep: Sweep, trials: int) -> Sweep:
    """Adds so many trials, also to a sweep that is over. Raises ConfigInvalid at `trials`, Conflict for a grid, which is complete."""
    with transaction.atomic():
        row = Sweep.objects.select_for_update().get(pk=sweep.pk)
        if row.method == Sweep.Chooses.GRID:
            raise Conflict("A grid has all its combinations already. Sweep again with more values.", "whole")
        if row.state == State.STOPPING:
            raise Conflict("The sweep is stopping. Add trials when it has stopped.", "stopping")
        if problem := _why_not(row, trials):
            raise ConfigInvalid([FieldProblem("trials", problem)])
        row.wanted += trials
        row.save(update_fields=["wanted"])
        if row.state != State.RUNNING:
            move(row, State.RUNNING)
        audit.record(membership, membership.user, "sweep.add", row, trials=trials)
        enqueue(ADVANCE, row.pk)
    sweep.refresh_from_db()
    return sweep


def _why_not(row: Sweep, trials: int) -> str:
    most = min(checking.MOST_TRIALS, checking.MOST_RUNS // row.seeds)
    total = space.size([SweepAxis.of(each) for each in row.axes])
    if total is not None and total < most and row.wanted + trials > total:
        return f"the keys have {total:,} configurations, and {row.wanted:,} are already used"
    return "" if trials >= 1 and row.wanted + trials <= most else f"1 to {max(most - row.wanted, 1):,}"


def move(row: Sweep, state: State, reason: str = "") -> None:
    """Changes the state, and audits the end of the sweep; the caller audits what a person did. The caller holds the lock of the row. Raises
    ValueError for a change that `SOURCES` does not allow."""
    before = row.state
    if before not in SOURCES[state]:
        raise ValueError(f"a sweep that is {before} cannot become {state}")
    row.state, row.state_reason = state, reason
    row.ended_at = timezone.now() if row.is_over else None
    row.save(update_fields=["state", "state_reason", "ended_at"])
    if row.is_over:
        told = {"before": before, "trials": row.trials.count(), **({"reason": reason} if reason else {})}
        audit.record(row.workspace, None, f"sweep.{row.state}", row, **told)
        by = audit.who_asked(row, "sweep.stop") if state == State.STOPPED else None
        facts = _facts(row) | asdict(outcomes.outcome_now(row))
        announce(row.workspace_id, f"sweep.{row.state}", facts, by=by)


def _facts(row: Sweep) -> dict[str, object]:
    return {
        "sweep": row.pk,
        "name": row.name,
        "experiment": row.experiment.name,
        "recipe": row.recipe,
        "trials": row.trials.count(),
        "wanted": row.wanted,
        "reason": row.state_reason,
    }
