"""The text of a cell in the table of runs, on the page and in reports."""

from webapp.core.text.durations import duration

from .. import recipe_metrics
from .columns import Column
from .queries import Cell
from .seed_groups import FoldedCell


def is_number(value: object) -> bool:
    return isinstance(value, (int, float))


def cell_text(cell: Cell | FoldedCell) -> str:
    """A value as its metric is read, or as short as it stays exact enough to compare."""
    return _text(cell.column, cell.value)


def mean_text(cell: FoldedCell) -> str:
    """The mean over seeds."""
    return _text(cell.column, cell.estimate.value if cell.estimate else None)


def interval_text(cell: FoldedCell) -> str:
    """The interval of the cell's estimate, and the number of seeds behind it."""
    found = cell.estimate
    if found is None:
        return ""
    missing = f", {found.missing} without" if found.missing else ""
    if found.low is None or found.high is None:
        return f"{found.n} seed{missing}"
    low = max(found.low, 0) if cell.column.name == "took" else found.low  # no run takes less than nothing
    return f"{_text(cell.column, low)} to {_text(cell.column, found.high)}, {found.n} seeds{missing}"


def _text(column: Column, value: float | str | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value if len(value) <= 60 else f"{value[:59]}…"
    if column.name == "took":
        return duration(value)
    if column.metric is not None:
        return recipe_metrics.measured(value, column.metric)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    return f"{value:.4g}"
