"""Counts how the trials of sweeps ended: the trials with a value, and those of which a run failed. Events, lists and *Home* say it."""

from dataclasses import dataclass, fields
from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from trainer.contracts.plurals import with_noun

from ..models import Run, Sweep, SweepRun, SweepTrial


@dataclass(frozen=True)
class SweepOutcome:
    """`failed_trials`: the trials of which a run failed. `measured_trials`: the trials with a value for every seed."""

    failed_runs: int
    failed_trials: int
    measured_trials: int


def with_outcomes(rows: QuerySet[Sweep]) -> QuerySet[Sweep]:
    """Adds the fields of `SweepOutcome` to each sweep."""
    failed = SweepRun.objects.filter(trial__sweep=OuterRef("pk"), run__state=Run.State.FAILED)
    measured = SweepTrial.objects.filter(sweep=OuterRef("pk"), state=SweepTrial.State.FINISHED)
    counted = {
        "failed_runs": _counted(failed, "trial__sweep", Count("pk")),
        "failed_trials": _counted(failed, "trial__sweep", Count("trial", distinct=True)),
        "measured_trials": _counted(measured, "sweep", Count("pk")),
    }
    return rows.annotate(**counted)


def _counted(rows: QuerySet[Any], sweep: str, count: Count) -> Coalesce:
    """The number of the rows of one sweep; 0 if there are none."""
    return Coalesce(Subquery(rows.order_by().values(sweep).annotate(count=count).values("count")), 0)


def outcome(row: Sweep) -> SweepOutcome:
    """The outcome of a row of `with_outcomes`."""
    return SweepOutcome(**{field.name: getattr(row, field.name) for field in fields(SweepOutcome)})


def outcome_now(row: Sweep) -> SweepOutcome:
    return outcome(with_outcomes(Sweep.objects.filter(pk=row.pk)).get())


def words(trials: int, failed: int, measured: int) -> str:
    """`3 trials, 1 with failed runs.`: the trials of a sweep that has finished."""
    told = [with_noun(trials, "trials")]
    if failed:
        told.append(f"{failed:,} with failed runs")
    if not measured and failed < trials:
        told.append("none with a value")
    return f"{', '.join(told)}."
