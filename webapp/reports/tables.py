"""The rows of a table block: what the table of runs holds, in words that need no script."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from webapp.core.problems import Invalid
from webapp.experiments.models import Run
from webapp.experiments.sharing.comparison_contents import value as kept_short
from webapp.experiments.table import queries, seed_groups
from webapp.experiments.table.cell_texts import cell_text, interval_text, is_number, mean_text
from webapp.experiments.table.columns import PICTURES, Column
from webapp.experiments.table.language import QueryProblem
from webapp.experiments.table.queries import Layout

from . import sources
from .access import ReportReader
from .language import ReportBlock

COLUMNS = ("state", "result", "gain", "took")
ROWS = 20
PEOPLE = ("by",)  # columns that name them
ToldValue = Callable[[Any], Any]


@dataclass(frozen=True)
class TableCell:
    """`text` is a dash if there is no value; `small` stands below."""

    text: str
    small: str = ""
    number: bool = False

    @property
    def missing(self) -> bool:
        return self.text == "–"


@dataclass(frozen=True)
class TableRow:
    run: Run
    name: str
    ids: tuple[int, ...]  # of the runs that it stands for
    small: str
    cells: tuple[TableCell, ...]

    @property
    def count(self) -> int:
        return len(self.ids)


def table(reader: ReportReader, block: ReportBlock) -> tuple[Sequence[str], dict[str, Any]]:
    """The notes of the block and the context of its table. Raises sources.NothingToShow."""
    found = sources.block_runs(reader, block)
    apart, most = block.given.get("seeds") == "apart", block.given.get("most", ROWS)
    wanted = tuple(name for name in block.given.get("columns", COLUMNS) if not (reader.is_stranger and name in PEOPLE))
    layout = Layout(sources.asked(reader, block), block.given.get("sort", queries.NEWEST), wanted)
    read: Callable[..., queries.TablePage[Any]] = queries.page if apart else seed_groups.page
    try:
        page = read(reader.membership, layout, None, most, reader.only)
    except QueryProblem as problem:
        raise sources.unreadable(block, problem) from problem
    except Invalid as problem:
        raise sources.NothingToShow(
            f"Line {block.lines.get('sort', block.line)}: {' '.join(problem.fields.values())}"
        ) from problem
    shown = [column for column in page.columns if column.name not in PICTURES]
    notes = [f"Column {name}: {'it is not here.' if reader.is_stranger else why}" for name, why in page.unknown.items()]
    if page.next:
        notes.append(f"Only the first {most} rows are shown.")
    told = kept_short if reader.is_stranger else _as_it_is
    rows = [_alone(row, told) if apart else _family(row, told) for row in page.rows]
    return [*found.notes, *notes], {"heads": [(each.label, not each.is_text) for each in shown], "rows": rows}


def _as_it_is(value: Any) -> Any:
    return value


def _alone(row: queries.RunRow, told: ToldValue) -> TableRow:
    cells = tuple(
        _aligned(_cell(row.run, cell, told), cell.column) for cell in row.cells if cell.column.name not in PICTURES
    )
    return TableRow(row.run, str(row.run), (row.run.pk,), row.run.experiment.name, cells)


def _family(row: seed_groups.FoldedRow, told: ToldValue) -> TableRow:
    seeds = f" · seeds {', '.join(row.seeds)}" if len(row.ids) > 1 and row.seeds else ""
    cells = tuple(
        _aligned(_folded(row, cell, told), cell.column) for cell in row.cells if cell.column.name not in PICTURES
    )
    return TableRow(row.run, row.name, row.ids, f"{row.run.experiment.name}{seeds}", cells)


def _aligned(cell: TableCell, column: Column) -> TableCell:
    """A dash stands where the column's numbers stand."""
    return replace(cell, number=True) if cell.missing and not column.is_text else cell


def _cell(run: Run, cell: queries.Cell, told: ToldValue) -> TableCell:
    if cell.column.pk is not None:
        return TableCell(cell_text(replace(cell, value=told(cell.value))), number=is_number(cell.value))
    return TableCell(_fact(run, cell.column.name))


def _folded(row: seed_groups.FoldedRow, cell: seed_groups.FoldedCell, told: ToldValue) -> TableCell:
    name = cell.column.name
    if name == "state":
        return TableCell(", ".join(f"{n} {state}" if len(row.ids) > 1 else state for state, n in row.states))
    if cell.estimate:
        return TableCell(mean_text(cell), interval_text(cell) if len(row.ids) > 1 else "", True)
    if cell.differ:
        return TableCell(f"{cell.differ} values")
    if cell.column.pk is not None:
        return TableCell(cell_text(replace(cell, value=told(cell.value))), number=is_number(cell.value))
    shared = name in ("experiment", "recipe", "model", "dataset", "group", "by") or len(row.ids) == 1
    return TableCell(_fact(row.run, name) if shared else "–")


FACTS: Mapping[str, Callable[[Run], object]] = {
    "state": lambda run: run.get_state_display(),
    "step": lambda run: f"{run.step} / {run.steps_total}" if run.steps_total else run.step,
    "experiment": lambda run: run.experiment.name,
    "recipe": lambda run: run.recipe,
    "model": lambda run: run.model and run.model.name,
    "dataset": lambda run: run.dataset_version,
    "group": lambda run: run.group,
    "by": lambda run: run.created_by,
    "created": lambda run: run.created_at,
    "started": lambda run: run.started_at,
    "ended": lambda run: run.ended_at,
    "name": lambda run: run,
}


def _fact(run: Run, name: str) -> str:
    value = FACTS[name](run) if name in FACTS else None
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return "–" if value in (None, "") else str(value)
