"""The workers' part of a sweep: they read the results of its trials, stop the weak ones, launch the next ones.

A round may come twice, at once, or not at all. It locks the row of the sweep, and writes a trial together with its runs. So a killed worker
leaves a whole trial or none, and the next round finds what is missing.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from trainer.config import ConfigInvalid
from webapp.accounts.models import Membership
from webapp.core.problems import Problem
from webapp.core.tasks import enqueue

from .. import access
from ..launch import checks, named_rows
from ..launch import services as launching
from ..lifecycle import services as lifecycle
from ..lifecycle import waiting_line
from ..lifecycle.limits import RunLimits
from ..lifecycle.states import when_over
from ..models import OVER, Run, Sweep, SweepRun, SweepTrial
from . import checking, choosing, reading, space, tpe
from .services import ADVANCE, move
from .space import SweepAxis

logger = logging.getLogger(__name__)
Trial = SweepTrial.State
Runs = Mapping[int, Sequence[SweepRun]]


@when_over
def notice(run: Run) -> None:
    """Continues the sweep of a run that is over."""
    if row := SweepRun.objects.filter(run=run).select_related("trial").first():
        enqueue(ADVANCE, row.trial.sweep_id)


def watch() -> None:
    """For every sweep that is not over: decides at its rungs, and does what a lost worker left undone."""
    under_way = Sweep.objects.filter(state__in=(Sweep.State.RUNNING, Sweep.State.STOPPING))
    for sweep_id in list(under_way.order_by("pk").values_list("pk", flat=True)):
        try:
            advance(sweep_id)
        except Exception:  # one sweep must not keep the others waiting
            logger.exception("sweep %s could not continue; the next round tries again", sweep_id)


def advance(sweep_id: int) -> None:
    """Brings a sweep up to date, one trial a transaction."""
    launched = False
    while _round(sweep_id):
        launched = True
    if launched and Sweep.objects.filter(pk=sweep_id, together=True).exists():
        waiting_line.let_in()  # now that all are there that start together
    _stop_runs(sweep_id)


def _round(sweep_id: int) -> bool:
    """Does one round. True if it launched a trial: there may be room for another."""
    with transaction.atomic():
        sweep = Sweep.objects.select_for_update().filter(pk=sweep_id).first()
        if sweep is None:
            return False
        trials, runs = list(sweep.trials.order_by("number")), reading.runs_of(sweep)
        settle(sweep, trials, runs)
        active = any(each.run.state not in OVER for found in runs.values() for each in found)
        if sweep.state == Sweep.State.STOPPING and not active:
            move(sweep, Sweep.State.STOPPED)
        if sweep.state != Sweep.State.RUNNING:
            return False
        under_way = sum(trial.state == Trial.RUNNING for trial in trials)
        if len(trials) < sweep.wanted and under_way < sweep.at_once:
            return _next(sweep, trials)
        if len(trials) >= sweep.wanted and not active:
            move(sweep, Sweep.State.FINISHED, sweep.state_reason)
        return False


def settle(sweep: Sweep, trials: Sequence[SweepTrial], runs: Runs) -> None:
    """Writes the changes of the trials, in their order: decisions at rungs, and outcomes. The caller holds the lock."""
    values = reading.last_values(sweep, [each.run for found in runs.values() for each in found])
    clock = sweep.clock
    for trial in trials:
        mine, before = runs.get(trial.pk, []), (trial.state, trial.told, len(trial.rungs))
        if trial.state == Trial.RUNNING and sweep.first_rung:
            _look_at_rungs(sweep, trial, trials, mine)
        trial.state = _came_to(sweep, trial, mine, values)
        _tell(sweep, trial, [values.get(each.run_id) for each in mine])
        if (trial.state, trial.told, len(trial.rungs)) != before:
            trial.save(update_fields=["state", "told", "rungs"])
    if sweep.clock != clock:
        sweep.save(update_fields=["clock"])


def _tell(sweep: Sweep, trial: SweepTrial, values: Sequence[float | None]) -> None:
    """Notes the outcome of a trial at the clock: its first one, and that of a trial whose runs somebody has resumed since. A trial that has
    finished is told once."""
    earlier = _told(trial)
    last = earlier[-1]["state"] if earlier else Trial.RUNNING
    if trial.state == last or last == Trial.FINISHED:
        return
    sweep.clock += 1
    known = [value for value in values if value is not None] if trial.state == Trial.FINISHED else []
    value = sum(known) / len(known) if known else None
    told = {"at": sweep.clock, "state": str(trial.state), "value": value}
    trial.told = {**earlier[0], "later": [*earlier[1:], told]} if earlier else told


def _told(trial: SweepTrial) -> list[dict[str, Any]]:
    """The outcomes that were told, in their order."""
    if not trial.told:
        return []
    first = {name: value for name, value in trial.told.items() if name != "later"}
    return [first, *trial.told.get("later", [])]


def _came_to(sweep: Sweep, trial: SweepTrial, runs: Sequence[SweepRun], values: Mapping[int, float]) -> str:
    if trial.state == Trial.REFUSED:
        return Trial.REFUSED
    decided = stopped_at(trial)
    active = [each.run for each in runs if each.run.state not in OVER]
    if active:  # somebody may have resumed a run that was stopped early
        on_its_way = decided and all(run.attempt_at <= decided for run in active)
        return Trial.PRUNED if on_its_way else Trial.RUNNING
    if len(runs) == sweep.seeds and all(each.run_id in values for each in runs):
        return Trial.FINISHED
    return Trial.PRUNED if decided else Trial.LOST


def stopped_at(trial: SweepTrial) -> datetime | None:
    """The time at which it was decided to stop the trial early; None if it was not stopped early."""
    last: dict[str, Any] = trial.rungs[-1] if trial.rungs else {"goes_on": True}
    return None if last["goes_on"] else parse_datetime(last["time"])


def _look_at_rungs(sweep: Sweep, trial: SweepTrial, trials: Sequence[SweepTrial], runs: Sequence[SweepRun]) -> None:
    """Decides at each rung that all its seeds have reached."""
    steps = int(trial.values.get("steps", sweep.config["steps"]))
    done = {each["step"] for each in trial.rungs}
    for step in choosing.rungs(sweep.first_rung, sweep.factor, steps):
        if step in done:
            continue
        values = reading.at_rung(sweep, runs, step)
        if stopped_at(trial) or len(values) < sweep.seeds:
            return
        mean = sum(values) / len(values)
        others = [each["value"] for other in trials for each in other.rungs if each["step"] == step]
        goes_on = choosing.goes_on(mean, others, sweep.factor, sweep.higher)
        sweep.clock += 1
        now = timezone.now().isoformat()
        trial.rungs = [*trial.rungs, {"at": sweep.clock, "step": step, "value": mean, "goes_on": goes_on, "time": now}]


def outcomes_known_at(sweep: Sweep, number: int, clock: int, trials: Sequence[SweepTrial]) -> choosing.TrialAsked:
    """The known outcomes at `clock`, when trial `number` was chosen: the rows give the same answer at any later time."""
    known = [_known(trial, clock) for trial in trials if trial.number < number]
    return choosing.TrialAsked([SweepAxis.of(raw) for raw in sweep.axes], sweep.seed, number, sweep.higher, known)


def _known(trial: SweepTrial, clock: int) -> choosing.KnownTrial:
    by_then = [each for each in _told(trial) if each["at"] <= clock]
    told: dict[str, Any] = by_then[-1] if by_then else {"state": Trial.RUNNING.value, "value": None}
    rungs = {each["step"]: each["value"] for each in trial.rungs if each["at"] <= clock}
    return choosing.KnownTrial(trial.number, trial.values, told["state"], told["value"], rungs)


def _next(sweep: Sweep, trials: Sequence[SweepTrial]) -> bool:
    """Chooses and launches a trial. False if there is nothing more to launch."""
    number = len(trials) + 1
    membership = access.launcher(sweep.workspace_id, sweep.created_by_id)
    if membership is None:
        move(
            sweep,
            Sweep.State.FAILED,
            "The person who launched it is no longer allowed to launch runs here. Start a new sweep yourself.",
        )
        return False
    try:
        values = choosing.chosen(sweep.method, outcomes_known_at(sweep, number, sweep.clock, trials))
    except ImportError:
        move(sweep, Sweep.State.FAILED, f"{tpe.MISSING}. Then resume the sweep.")
        return False
    if values is None:
        sweep.wanted = len(trials)
        sweep.state_reason = "All configurations of the keys have been tried"
        sweep.save(update_fields=["wanted", "state_reason"])
        return True  # the next round sees whether it is over
    return _launch(membership, sweep, number, values)


def _launch(membership: Membership, sweep: Sweep, number: int, values: space.Values) -> bool:
    trial = SweepTrial.objects.create(
        sweep=sweep, number=number, values=values, digest=space.digest(values), asked=sweep.clock
    )
    try:
        with transaction.atomic():
            for seed in range(sweep.seeds):
                _launch_seed(membership, sweep, trial, seed)
    except (ConfigInvalid, Problem) as error:
        if why := _why_none(membership, sweep):
            trial.delete()  # nothing to do with this choice: no configuration could be launched
            move(sweep, Sweep.State.FAILED, f"Its runs cannot be launched any more: {why}")
            return False
        trial.state, trial.problem = Trial.REFUSED, str(error)
        sweep.clock += 1
        trial.told = {"at": sweep.clock, "state": trial.state, "value": None}
        trial.save(update_fields=["state", "problem", "told"])
        sweep.save(update_fields=["clock"])
    return True


def _config(sweep: Sweep, values: space.Values) -> dict[str, Any]:
    config = space.with_values(sweep.config, values)
    return named_rows.renamed(sweep.workspace_id, sweep.recipe, config, sweep.named_rows)


def _why_none(membership: Membership, sweep: Sweep) -> str:
    """The reason why the config can no longer be launched with any values; empty if it can."""
    dataset = checks.DatasetChoice(id=sweep.dataset, version=sweep.version)
    try:
        return checking.refused(membership, sweep.recipe, _config(sweep, {}), dataset, {})
    except ConfigInvalid as error:
        return str(error)


def _launch_seed(membership: Membership, sweep: Sweep, trial: SweepTrial, seed: int) -> None:
    run = launching.launch(
        membership,
        recipe=sweep.recipe,
        config=_config(sweep, {**trial.values, "seed": seed}),
        dataset=checks.DatasetChoice(id=sweep.dataset, version=sweep.version),
        experiment=sweep.experiment.name,
        name=f"{sweep.name[:90]}, trial {trial.number}, seed {seed}",
        limits=RunLimits.of(sweep.limits),
    )
    Run.objects.filter(pk=run.pk).update(group=sweep.group)
    SweepRun.objects.create(trial=trial, run=run, seed=seed)


def _stop_runs(sweep_id: int) -> None:
    """Stops the runs of trials that were stopped early, and all runs of a sweep that is stopping. It is called again if a
    worker died before."""
    rows = SweepRun.objects.filter(trial__sweep_id=sweep_id).exclude(run__state__in=OVER).select_related("trial__sweep")
    for row in rows.order_by("pk"):
        decided, sweep = stopped_at(row.trial), row.trial.sweep
        run = Run.objects.with_names().get(pk=row.run_id)
        if sweep.state == Sweep.State.STOPPING:
            lifecycle.stop_as(None, run, f"{sweep.name} was stopped")
        elif decided and run.attempt_at <= decided:
            step = row.trial.rungs[-1]["step"]
            lifecycle.stop_as(
                None,
                run,
                f"Stopped early by {sweep.name}: at step {step} trial {row.trial.number} was not among the best",
            )
