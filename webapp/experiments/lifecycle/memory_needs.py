"""The memory that a run is expected to need on a machine without GPUs. The line counts it for a run whose config reserves none.

It is the larger of two numbers: the forecast for its config, and what the process of the newest run has held that differs by the seed alone.
A process of a run keeps the memory that it has freed, so it holds its peak.
"""

from trainer.memory.shape import GIB

from ..metrics import points
from ..models import Run

HELD = "perf/memory_gib"
LOOKED_AT = 200
"""The newest runs of the recipe and model among which one like it is looked for."""


def at_launch(run: Run) -> int | None:
    """Bytes; None if nothing is known. `run.memory_needed` is the forecast, if there is one."""
    rows = Run.objects.filter(
        experiment__workspace_id=run.experiment.workspace_id, recipe=run.recipe, model_id=run.model_id
    )
    # the process of runs that train together holds all of them
    rows = rows.filter(first_metric_at__isnull=False, carried_by="").exclude(swept__trial__sweep__together=True)
    found = rows.exclude(pk=run.pk).order_by("-pk").values_list("pk", "family")[:LOOKED_AT]
    like = next((pk for pk, family in found if family == run.family), None)
    return _larger(run, like)


def at_resume(run: Run) -> int | None:
    """The memory that a resumed run needs, with what its own process has held."""
    return _larger(run, None if run.first_metric_at is None else run.pk)


def _larger(run: Run, source: int | None) -> int | None:
    held = 0.0 if source is None else points.highest(source, HELD, -1) or 0.0
    return max(run.memory_needed or 0, round(held * GIB)) or None
