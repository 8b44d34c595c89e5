"""The results of a sweep so far: its trials with their means over seeds, and the best of them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.contracts.plurals import noun
from trainer.metrics.claims.verdict import mean_over_seeds
from trainer.metrics.estimate import Estimate
from webapp.core.text.texts import shortened

from ..lifecycle import early_stop
from ..metrics import points
from ..models import OVER, Run, RunColumn, RunValue, Sweep, SweepRun, SweepTrial
from . import keys, space
from .space import SweepAxis

State = SweepTrial.State
MOST_REASONS, LONGEST_REASON = 5, 200


@dataclass(frozen=True)
class Seeded:
    """One seed of a trial. `value` is the metric's last if the run came to its end (`last_values`) and has measured it, else None."""

    seed: int
    run: Run
    value: float | None


@dataclass(frozen=True)
class TrialRow:
    """A trial as the table shows it. `estimate` is over all seeds of the sweep: those without a value are missing.

    `early`: the mean at the rung where it was stopped, and that step.
    """

    trial: SweepTrial
    values: list[str]
    estimate: Estimate
    runs: list[Seeded]
    early: tuple[float, int] | None = None

    @property
    def placed(self) -> list[tuple[int, str]]:
        """The values of the trial with the index of their axis."""
        return list(enumerate(self.values))

    @property
    def reasons(self) -> list[str]:
        """The reasons of its runs that failed or were stopped, once for seeds with the same one; none for a trial that was stopped early."""
        if self.trial.state == State.PRUNED:
            return []
        by_reason: dict[str, list[int]] = {}
        for each in self.runs:
            if each.run.state in (Run.State.FAILED, Run.State.STOPPED):
                by_reason.setdefault(_reason(each.run), []).append(each.seed)
        named = ((noun(len(seeds), "seeds"), ", ".join(map(str, seeds)), why) for why, seeds in by_reason.items())
        return [f"{word} {seeds}: {why}" for word, seeds, why in named]

    @property
    def complete(self) -> bool:
        """Whether each seed has a value. A sweep that was over when a run that its rule had stopped did not count yet knows its trial as one
        with seeds missing."""
        over = self.trial.state in (State.FINISHED, State.LOST)
        return over and not self.estimate.missing and self.estimate.value is not None

    @property
    def state(self) -> State:
        return State.FINISHED if self.complete else State(self.trial.state)


@dataclass(frozen=True)
class SweepStanding:
    sweep: Sweep
    axes: list[SweepAxis]
    rows: list[TrialRow]
    best: TrialRow | None

    @property
    def states(self) -> list[tuple[str, int]]:
        """The number of trials that are in each state, for states with trials."""
        words = dict(State.choices) | {State.LOST: "with seeds missing"}
        counts = {label: sum(row.state == state for row in self.rows) for state, label in words.items()}
        return [(label, n) for label, n in counts.items() if n]

    @property
    def runs(self) -> int:
        return sum(len(row.runs) for row in self.rows)

    @property
    def runs_over(self) -> int:
        return sum(each.run.state in OVER for row in self.rows for each in row.runs)

    @property
    def failed(self) -> int:
        return sum(count for _, count in self._reasons())

    @property
    def failures(self) -> list[tuple[str, int]]:
        """The reasons why runs failed, with the number of runs, the most frequent first."""
        return self._reasons()[:MOST_REASONS]

    @property
    def failed_otherwise(self) -> int:
        """The number of runs that failed for other reasons than those of `failures`."""
        return sum(count for _, count in self._reasons()[MOST_REASONS:])

    def _reasons(self) -> list[tuple[str, int]]:
        lost = [each.run for row in self.rows for each in row.runs if each.run.state == Run.State.FAILED]
        return Counter(map(_reason, lost)).most_common()

    @property
    def runs_wanted(self) -> int:
        return self.sweep.wanted * self.sweep.seeds

    @property
    def progress(self) -> float:
        """The part of the sweep that is done: runs that are over count as whole, others by their steps."""
        parts = [each.run for row in self.rows for each in row.runs]
        done = sum(1.0 if run.state in OVER else run.step / (run.steps_total or 1) for run in parts)
        return min(1.0, done / self.runs_wanted)

    @property
    def known(self) -> list[tuple[int, space.Values, float]]:
        """Number, values and mean of each trial that has a value for every seed."""
        whole = [(row.trial, row.estimate.value) for row in self.rows if row.complete]
        return [(trial.number, trial.values, value) for trial, value in whole if value is not None]

    @property
    def ranked(self) -> list[TrialRow]:
        """The trials, best first; those without a value for all seeds come last, in their order."""
        sign = -1 if self.sweep.higher else 1
        whole = [row for row in self.rows if row.complete]
        rest = [row for row in self.rows if not row.complete]
        return sorted(whole, key=lambda row: sign * (row.estimate.value or 0.0)) + rest


def _reason(run: Run) -> str:
    """The first line of the reason for the state of the run."""
    return shortened(run.state_reason.strip().partition("\n")[0], LONGEST_REASON) or "No reason is known"


def standing(sweep: Sweep) -> SweepStanding:
    """The state of the sweep, in three queries for any number of trials."""
    axes = [SweepAxis.of(raw) for raw in sweep.axes]
    runs = runs_of(sweep)
    values = last_values(sweep, [each.run for found in runs.values() for each in found])
    rows = [_row(sweep, axes, trial, runs.get(trial.pk, []), values) for trial in sweep.trials.order_by("number")]
    found = SweepStanding(sweep, axes, rows, None)
    best = next((row for row in found.ranked if row.complete), None)
    return SweepStanding(sweep, axes, rows, best)


def runs_of(sweep: Sweep) -> dict[int, list[SweepRun]]:
    """The runs by trial, in the order of the seeds."""
    found: dict[int, list[SweepRun]] = {}
    rows = SweepRun.objects.filter(trial__sweep=sweep).select_related("run").defer("run__config", "run__summary")
    for row in rows.order_by("trial_id", "seed"):
        found.setdefault(row.trial_id, []).append(row)
    return found


def last_values(sweep: Sweep, runs: Iterable[Run]) -> dict[int, float]:
    """The metric's last value of the runs that came to their end, by run; runs without a value are left out. The rule of early stopping is
    such an end: it says that more steps would not improve the run."""
    finished = [run.pk for run in runs if run.state == Run.State.FINISHED or early_stop.ended(run)]
    column = RunColumn.objects.filter(
        workspace_id=sweep.workspace_id, source=RunColumn.Source.METRIC, path=sweep.metric
    ).first()
    if column is None or not finished:
        return {}
    held = RunValue.objects.filter(column=column, run__in=finished, number__isnull=False)
    return {run_id: number for run_id, number in held.values_list("run_id", "number") if number is not None}


def at_rung(sweep: Sweep, runs: Sequence[SweepRun], step: int) -> list[float]:
    """The first value of the metric at `step` or later, for each run that has one."""
    return points.first_values([each.run_id for each in runs], sweep.metric, step)


def _row(
    sweep: Sweep, axes: Sequence[SweepAxis], trial: SweepTrial, runs: Sequence[SweepRun], values: Mapping[int, float]
) -> TrialRow:
    shown = [keys.value_text(trial.values[axis.path]) for axis in axes]
    held = {each.seed: Seeded(each.seed, each.run, values.get(each.run_id)) for each in runs}
    estimate = mean_over_seeds([held[seed].value if seed in held else None for seed in range(sweep.seeds)])
    return TrialRow(trial, shown, estimate, list(held.values()), _early(trial))


def _early(trial: SweepTrial) -> tuple[float, int] | None:
    rungs: list[dict[str, Any]] = trial.rungs
    return next(((each["value"], each["step"]) for each in rungs if not each["goes_on"]), None)
