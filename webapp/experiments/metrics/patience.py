"""Counts for how many values a metric has not improved, as Keras' `EarlyStopping` and Lightning's count it.

A value improves if it is better than the best one by more than `min_delta`; then it is the best one, and the count begins again. The first
value is the best at first. What was counted is kept (`MetricProgress`), so that only points that came since are read. Code that writes
points forgets it if one comes late or again; it holds the lock of the run, as the caller here does. A look reads at most `PIECE` points, so
that a run of a million points keeps nobody waiting who stores more of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from . import points
from .models import MetricProgress

PIECE = 20_000
"""The points that one look reads."""


@dataclass(frozen=True)
class Patience:
    """`waited`: finite values since the best one; `step`: of the last value that was counted, -1 before the first."""

    step: int = -1
    best: float | None = None
    waited: int = 0

    def after(self, found: Iterable[tuple[int, float]], higher: bool, min_delta: float) -> "Patience":
        """The patience after further values, (step, value) by step."""
        step, best, waited = self.step, self.best, self.waited
        for step, value in found:  # noqa: B007  the last one counts
            if best is None or (value - min_delta > best if higher else value + min_delta < best):
                best, waited = value, 0
            else:
                waited += 1
        return Patience(step, best, waited)


def waited(run_id: int, key: str, higher: bool, min_delta: float) -> int | None:
    """The finite values of the metric since its best one; None if more points are to be counted: call it again. Call it in a transaction that
    holds the lock of the run."""
    rule = {"key": key, "higher": higher, "min_delta": min_delta}
    row = MetricProgress.objects.filter(run_id=run_id, **rule).values("step", "best", "waited").first()
    before = found = Patience(**row) if row else Patience()
    read = 0
    for _, piece in points.read_points(run_id, [key], [before.step], PIECE):
        found = found.after(zip(piece["step"].tolist(), piece["value"].tolist(), strict=True), higher, min_delta)
        read += len(piece)
    if found != before:
        MetricProgress.objects.update_or_create(run_id=run_id, defaults=rule | asdict(found))
    return found.waited if read < PIECE else None


def written(run_id: int, again: Mapping[str, int]) -> None:
    """Forgets what was counted of the keys in `again`: points came late or again there."""
    if again:
        MetricProgress.objects.filter(run_id=run_id, key__in=again).delete()
