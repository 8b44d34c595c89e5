"""Cells of the table of runs."""

from typing import Any

from django import template
from django.utils.http import urlencode

from webapp.core.templatetags.ui import duration

from ..table import folded
from ..table.columns import Column
from ..table.language import quoted
from ..table.queries import Cell
from .runs import measured

register = template.Library()


@register.filter
def is_number(value: object) -> bool:
    return isinstance(value, (int, float))


@register.filter
def cell_text(cell: "Cell | folded.FoldedCell") -> str:
    """A value as its metric is read, or as short as it stays exact enough to compare."""
    return _text(cell.column, cell.value)


@register.filter
def mean_text(cell: "folded.FoldedCell") -> str:
    """The mean over seeds."""
    return _text(cell.column, cell.estimate.value if cell.estimate else None)


@register.filter
def interval_text(cell: "folded.FoldedCell") -> str:
    """The interval of the cell's estimate, and the number of seeds behind it."""
    found = cell.estimate
    if found is None:
        return ""
    missing = f", {found.missing} without" if found.missing else ""
    if found.low is None or found.high is None:
        return f"{found.n} seed{missing}"
    return f"{_text(cell.column, found.low)} to {_text(cell.column, found.high)}, {found.n} seeds{missing}"


@register.filter
def members(row: "folded.FoldedRow") -> str:
    """The address of the runs of a row."""
    return urlencode({"q": f"is:any run:{','.join(map(str, row.ids[:100]))}"})


def _text(column: Column, value: float | str | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value if len(value) <= 60 else f"{value[:59]}…"
    if column.name == "took":
        return duration(value)
    if column.metric is not None:
        return measured(value, column.metric)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    return f"{value:.4g}"


@register.simple_tag
def query_of(field: str, value: Any) -> str:
    """The address of the runs that have this value."""
    return urlencode({"q": f"{field}:{quoted(str(value))}"})
