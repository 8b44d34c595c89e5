"""Stalled runs: their process is alive, but no step ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from webapp.webhooks.services import announce

from .. import recipe_metrics
from ..metrics import points
from ..models import Run
from .states import facts

STILL = timedelta(minutes=10)
STILL_STEPS = 10
"""A run is stalled if no step has ended for `STILL` and for as long as this many of its steps take."""
AT_ONCE = 50


@dataclass(frozen=True)
class Stall:
    """`quiet` is how long ago its last step ended."""

    run: Run
    quiet: timedelta


def find(rows: Sequence[Run]) -> list[Stall]:
    """The stalled ones of the running `rows`. A logged run is left out, because the length of its steps is not known."""
    pulses = {run.pk: key for run in rows if run.first_metric_at is not None and (key := _pulse(run))}
    times = points.times({run.pk: (pulses[run.pk], run.step) for run in rows if run.pk in pulses})
    now, found = timezone.now(), []
    for run in rows:
        if run.pk not in times or run.first_metric_at is None:
            continue
        took = (times[run.pk] - run.first_metric_at) / max(run.step - run.start_step, 1)
        if (quiet := now - times[run.pk]) > max(STILL, STILL_STEPS * took):
            found.append(Stall(run, quiet))
    return found


def _pulse(run: Run) -> str:
    recipe = recipe_metrics.recipe_of(run.recipe)
    return recipe.pulse.key if recipe and recipe.pulse else ""


def watch() -> int:
    """One round of upkeep: announces each stalled run once, until its steps come again. Returns the number."""
    running = Run.objects.filter(state=Run.State.RUNNING, first_metric_at__isnull=False)
    told, after = 0, 0
    while rows := list(running.with_names().filter(pk__gt=after).order_by("pk")[:AT_ONCE]):
        after = rows[-1].pk
        found = find(rows)
        still = {each.run.pk for each in found}
        goes_on = [run.pk for run in rows if run.stalled_at and run.pk not in still]
        if goes_on:
            Run.objects.filter(pk__in=goes_on).update(stalled_at=None)
        told += sum(_tell(each) for each in found if each.run.stalled_at is None)
    return told


@transaction.atomic
def _tell(stall: Stall) -> bool:
    run = stall.run
    same = Run.objects.filter(pk=run.pk, attempt=run.attempt, state=Run.State.RUNNING, step=run.step, stalled_at=None)
    if not same.update(stalled_at=timezone.now()):
        return False
    announce(run.experiment.workspace_id, "run.stalled", facts(run) | {"quiet_s": round(stall.quiet.total_seconds())})
    return True
