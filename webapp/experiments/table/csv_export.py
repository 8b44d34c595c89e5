"""Runs as CSV, page by page. Memory does not grow with their number, and a spreadsheet runs no cell as a formula."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from webapp.accounts.models import Membership
from webapp.core.text import spreadsheets

from ..models import Run
from . import columns, queries
from .columns import Column
from .queries import Layout, RunRow

PAGE = 200


def lines(membership: Membership, layout: Layout, ids: Sequence[int] | None = None) -> Iterator[str]:
    """A head and a line for each run: those of the query in its order, or those of `ids`. Errors are raised before the first line:
    QueryProblem, Invalid."""
    first = queries.page(membership, layout, None, 1)  # raises if the query or the order cannot be read
    shown = tuple(column for column in first.columns if column.name != "curve")
    heads = ["run", "experiment", "name", "tags", *(column.name for column in shown)]
    found = _chosen(membership, ids, shown) if ids is not None else _all(membership, layout)
    return _written(heads, shown, found)


def _written(heads: list[str], shown: Sequence[Column], found: Iterator[RunRow]) -> Iterator[str]:
    yield spreadsheets.lines([heads])
    for row in found:
        cells = {cell.column.name: cell for cell in row.cells}
        values = [_value(row, cells[column.name]) for column in shown]
        yield spreadsheets.lines([[row.run.pk, row.run.experiment.name, str(row.run), ", ".join(row.tags), *values]])


def _all(membership: Membership, layout: Layout) -> Iterator[RunRow]:
    cursor = None
    while True:
        page = queries.page(membership, layout, cursor, PAGE)
        yield from page.rows
        cursor = page.next
        if cursor is None:
            return


def _chosen(membership: Membership, ids: Sequence[int], shown: Sequence[Column]) -> Iterator[RunRow]:
    for start in range(0, len(ids), PAGE):
        yield from queries.rows(membership, ids[start : start + PAGE], shown)


def _value(row: RunRow, cell: queries.Cell) -> Any:
    run: Run = row.run
    name = cell.column.name
    if cell.column.pk is not None or name not in (*columns.FACTS, *columns.PICTURES):
        return cell.value
    facts = {
        "created": run.created_at,
        "started": run.started_at,
        "ended": run.ended_at,
        "experiment": run.experiment.name,
        "model": run.model.name if run.model else "",
        "dataset": str(run.dataset_version or ""),
        "by": str(run.created_by) if run.created_by else "",
        "name": str(run),
    }
    value = facts.get(name, getattr(run, name, None))
    return value.isoformat() if isinstance(value, datetime) else value
