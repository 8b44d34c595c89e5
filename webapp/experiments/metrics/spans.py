"""The work on which the newest steps of a run were spent."""

from collections.abc import Mapping
from typing import Any

from trainer.contracts import SpansData

from ..models import StepSpans

KEPT = 1000  # steps of a run
SWEPT = 50  # steps between two deletions of older ones


def store(run_id: int, told: Mapping[int, SpansData]) -> None:
    """Stores the spans by their step, and now and then deletes those of old steps."""
    rows = [
        StepSpans(run_id=run_id, step=step, took=data.took, told=data.model_dump(include={"names", "spans", "beside"}))
        for step, data in told.items()
    ]
    StepSpans.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["run", "step"], update_fields=["took", "told"]
    )
    if any(step % SWEPT == 0 for step in told):
        StepSpans.objects.filter(run_id=run_id, step__lte=max(told) - KEPT).delete()


def of_step(run_id: int, step: int | None) -> dict[str, Any]:
    """`{"step", "seconds", "spans", "beside", "first", "last"}` of the step, or of the newest. `step` is None if there is nothing of it; `first`
    and `last` are the steps between which there are spans."""
    rows = StepSpans.objects.filter(run_id=run_id).order_by("step")
    first, last = rows.values_list("step", flat=True).first(), rows.values_list("step", flat=True).last()
    row = rows.filter(step=last if step is None else step).first() if last is not None else None
    ends = {"first": first, "last": last}
    if row is None:
        return {"step": None, "seconds": None, "spans": [], "beside": [], **ends}
    spans, beside = (_read(row.told["names"], row.told[part]) for part in ("spans", "beside"))
    return {"step": row.step, "seconds": row.took / 1e6, "spans": spans, "beside": beside, **ends}


def _read(names: list[str], spans: list[list[int]]) -> list[dict[str, Any]]:
    return [
        {
            "work": names[work],
            "name": names[name],
            "inside": None if inside < 0 else inside,
            "start": start / 1e6,
            "seconds": took / 1e6,
            "pieces": pieces,
        }
        for work, name, inside, start, took, pieces in spans
    ]
