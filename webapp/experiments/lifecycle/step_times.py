"""Estimates the time of a run before its own process can: from its own earlier steps, or from earlier runs like it."""

import statistics
from collections.abc import Iterable, Sequence

from django.db.models import F, Q

from ..metrics import points
from ..models import LOGGED, Run

STEP_S = "perf/step_s"
STEPS = 20  # values of a run that its pace is taken from
RUNS = 5  # the newest earlier runs that the pace is taken from
LOOKED_AT = 200  # earlier runs that are looked at


def step_s(runs: Sequence[Run]) -> dict[int, float]:
    """{run id: seconds of a step}. From the run's own steps, if it is resumed; else from the newest runs that differ by the seed alone;
    else from the newest runs of its recipe and model in its workspace. Always the median of their medians, so that one odd run does not set
    it. A run without any of these is missing. Two queries for any number of runs, which come with their experiments."""
    wanted = {run.pk: run for run in runs if run.recipe != LOGGED}
    if not wanted:
        return {}
    earlier = list(_earlier(wanted.values()))
    chosen = {pk: _like(run, earlier) for pk, run in wanted.items()}
    keys = dict.fromkeys((pk for ids in chosen.values() for pk in ids), STEP_S)
    medians = {pk: statistics.median(values) for pk, values in points.sparks(keys, STEPS).items() if values}
    found = {}
    for pk, ids in chosen.items():
        if known := [medians[each] for each in ids if each in medians]:
            found[pk] = statistics.median(known)
    return found


def seconds_left(run: Run, pace: float | None) -> float | None:
    """Seconds for the steps that are left at this pace, without evaluations; None without a pace."""
    return None if pace is None else max(0, run.steps_total - run.step) * pace


_Earlier = tuple[int, int, str, int | None, str]


def _earlier(runs: Iterable[Run]) -> Iterable[_Earlier]:
    """Runs that have taken a step, newest first: (id, workspace, recipe, model, family)."""
    like = Q()
    for workspace_id, recipe, model_id in {(run.experiment.workspace_id, run.recipe, run.model_id) for run in runs}:
        like |= Q(experiment__workspace_id=workspace_id, recipe=recipe, model_id=model_id)
    # runs that train together share a process, so their steps take longer
    rows = Run.objects.filter(like, step__gt=F("start_step"), carried_by="").order_by("-id")[:LOOKED_AT]
    return rows.values_list("pk", "experiment__workspace_id", "recipe", "model_id", "family")


def _like(run: Run, earlier: Iterable[_Earlier]) -> list[int]:
    if run.step > run.start_step:
        return [run.pk]
    alike = [row for row in earlier if row[1:4] == (run.experiment.workspace_id, run.recipe, run.model_id)]
    same = [row for row in alike if run.family and row[4] == run.family]
    return [row[0] for row in (same or alike)[:RUNS]]
