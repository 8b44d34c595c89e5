"""Values of metrics as columns: what is done to each of a million values is done by numpy, and by Python only what is done to each metric."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from webapp.datasets.encoding.copy_format import moment

from ..bulk import StepMetrics
from .points import LoggedPoint


@dataclass(frozen=True, eq=False)
class Grid:
    """The places of measured values: steps in order, none twice, and the time of each in microseconds since 2000. Metrics that were
    measured together share one."""

    steps: NDArray[np.int64]
    times: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Series:
    """The values of one metric. They may be NaN or infinite."""

    grid: Grid
    numbers: NDArray[np.float64]

    @property
    def first_step(self) -> int:
        return int(self.grid.steps[0])

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.numbers).all())

    def finite(self) -> "Series | None":
        """The series without the values that are not finite; None if no other is left."""
        kept = np.isfinite(self.numbers)
        if kept.all():
            return self
        return Series(Grid(self.grid.steps[kept], self.grid.times[kept]), self.numbers[kept]) if kept.any() else None


def of_steps(told: Iterable[StepMetrics]) -> dict[str, Series]:
    """The values of each metric, of steps in order. No two may be the same."""
    alike: dict[tuple[str, ...], list[StepMetrics]] = {}
    for each in told:
        alike.setdefault(tuple(each.values), []).append(each)
    parts: dict[str, list[Series]] = {}
    for keys, rows in alike.items():
        grid = _grid([row.step for row in rows], [row.time for row in rows])
        columns = np.array([list(row.values.values()) for row in rows], np.float64).T
        for key, column in zip(keys, columns, strict=True):
            parts.setdefault(key, []).append(Series(grid, column))
    return {key: found[0] if len(found) == 1 else _joined(found) for key, found in parts.items()}


def of_points(told: Iterable[LoggedPoint]) -> dict[str, Series]:
    """Series of points, of each metric by step; no step comes twice."""
    rows: dict[str, list[LoggedPoint]] = {}
    for each in told:
        rows.setdefault(each.key, []).append(each)
    grids: dict[tuple[tuple[int, datetime], ...], Grid] = {}
    found: dict[str, Series] = {}
    for key, points in rows.items():
        places = tuple((each.step, each.time) for each in points)
        if places not in grids:
            grids[places] = _grid([step for step, _ in places], [time for _, time in places])
        found[key] = Series(grids[places], np.array([each.value for each in points], np.float64))
    return found


def _grid(steps: Sequence[int], times: Sequence[datetime]) -> Grid:
    return Grid(np.array(steps, np.int64), np.array(list(map(moment, times)), np.int64))


def _joined(parts: Sequence[Series]) -> Series:
    steps, times, numbers = (
        np.concatenate(each)
        for each in zip(*((part.grid.steps, part.grid.times, part.numbers) for part in parts), strict=True)
    )
    order = np.argsort(steps)
    return Series(Grid(steps[order], times[order]), numbers[order])
