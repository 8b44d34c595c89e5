"""Reads of the table: a page of rows with the chosen columns. The number of queries does not depend on the number of rows."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from django.db.models import Q, QuerySet

from webapp.accounts.models import Membership
from webapp.core.problems import Invalid

from ..models import Experiment, Run
from ..runs import listing
from . import columns, keyset
from .among import Among
from .columns import Column
from .conditions import RunCondition, condition
from .keyset import RowOrder
from .language import QueryProblem
from .models import RunChange, RunStar, RunTag, RunValue, RunView, RunViewChoice

PAGE = 50
MOST_COUNTED = 10_000
NEWEST = "-created"
Shown = TypeVar("Shown")  # the rows of a page: runs, or families of runs


@dataclass(frozen=True)
class Layout:
    """The query, order, columns and groups that an address, a saved view or an API call asks for. They are not checked yet."""

    query: str = ""
    sort: str = NEWEST
    columns: tuple[str, ...] = columns.USUAL
    group: str = ""  # the name by whose values runs are grouped; empty: not at all


@dataclass(frozen=True)
class Cell:
    """A value of a column of config or metrics; None if the run has none."""

    column: Column
    value: float | str | None = None


@dataclass(frozen=True)
class RunRow:
    shown: listing.ListedRun
    tags: tuple[str, ...]
    starred: bool
    cells: tuple[Cell, ...]  # in the order of the columns; the value of a fact is None, because the run itself has it

    @property
    def run(self) -> Run:
        return self.shown.run


@dataclass(frozen=True)
class TablePage(Generic[Shown]):
    rows: list[Shown]
    next: str | None
    order: RowOrder
    columns: tuple[Column, ...]
    unknown: dict[str, str] = field(default_factory=dict)  # requested columns that do not exist -> why


def invalid_query(problem: QueryProblem) -> Invalid:
    """The problem for the API; `extra` has the place."""
    error = Invalid("The query cannot be read.", {"q": problem.message})
    error.extra = {"place": {"start": problem.start, "end": problem.end}}
    return error


@dataclass(frozen=True)
class FoundRuns:
    """The workspace's runs that a query finds; with `within`, only those with these ids."""

    membership: Membership
    condition: RunCondition
    within: Collection[int] | None = None

    def all(self) -> "QuerySet[Run]":
        runs = self._meeting(self.condition.of())
        return runs if self.within is None else runs.filter(pk__in=self.within)

    def among(self, ids: Collection[int]) -> "QuerySet[Run]":
        """Like `all`, for the runs with these ids."""
        wanted = set(ids) if self.within is None else set(ids).intersection(self.within)
        return self._meeting(self.condition.of(wanted)).filter(Among("pk", wanted))

    def _meeting(self, condition: Q) -> "QuerySet[Run]":
        ours = Experiment.objects.filter(workspace_id=self.membership.workspace_id)
        return Run.objects.filter(condition, experiment__in=ours.values("pk")).present()


def find_runs(membership: Membership, query: str, within: Collection[int] | None = None) -> "QuerySet[Run]":
    """The workspace's runs that a query finds; with `within`, only those with these ids. Raises QueryProblem."""
    return FoundRuns(membership, condition(membership, query), within).all()


def page(
    membership: Membership,
    layout: Layout,
    cursor: str | None = None,
    limit: int = PAGE,
    within: Collection[int] | None = None,
) -> TablePage[RunRow]:
    """Raises QueryProblem, and Invalid at `sort` or `cursor`. A column that does not exist is left out, and named in `unknown`. `within`:
    only these runs."""
    order, shown, unknown = resolved(membership, layout)
    ids, following = keyset.page(find_runs(membership, layout.query, within), order, cursor, limit)
    return TablePage(rows(membership, ids, shown), following, order, shown, unknown)


def resolved(membership: Membership, layout: Layout) -> tuple[RowOrder, tuple[Column, ...], dict[str, str]]:
    """The order and the columns of the layout, and the missing columns with the reason. Raises Invalid at `sort`."""
    sort = layout.sort or NEWEST
    by = sort.removeprefix("-")
    named = columns.resolve(membership.workspace_id, [by, *layout.columns[: columns.MAX_SHOWN]])
    shown = tuple(each for name in dict.fromkeys(layout.columns) if isinstance(each := named.get(name), Column))
    unknown = {name: each.message for name, each in named.items() if isinstance(each, columns.UnknownColumn)}
    return RowOrder(_sortable(named[by]), sort.startswith("-")), shown, unknown


def _sortable(column: "Column | columns.UnknownColumn") -> Column:
    if isinstance(column, columns.UnknownColumn):
        raise Invalid("The table cannot be sorted like this.", {"sort": column.message})
    if not column.has_order:
        raise Invalid("The table cannot be sorted like this.", {"sort": f"{column.label} has no order"})
    return column


def rows(membership: Membership, ids: Sequence[int], shown: Sequence[Column]) -> list[RunRow]:
    """The runs with these ids, which are the workspace's, in this order."""
    held = Run.objects.with_names().select_related("created_by").defer("config").filter(pk__in=ids)
    by_id = {run.pk: run for run in held}
    runs = [by_id[run_id] for run_id in ids if run_id in by_id]
    drawn = listing.rows_of(runs, curves=any(column.name == "curve" for column in shown))
    tags = _tags(ids)
    starred = set(RunStar.objects.filter(user=membership.user, run__in=ids).values_list("run_id", flat=True))
    values = values_of(ids, shown)
    return [
        RunRow(
            each,
            tags.get(each.run.pk, ()),
            each.run.pk in starred,
            tuple(Cell(column, values.get((each.run.pk, column.name))) for column in shown),
        )
        for each in drawn
    ]


def _tags(ids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for run_id, name in RunTag.objects.filter(run__in=ids).order_by("name").values_list("run_id", "name"):
        found[run_id] = (*found.get(run_id, ()), name)
    return found


def values_of(ids: Sequence[int], shown: Sequence[Column]) -> dict[tuple[int, str], float | str | None]:
    """{(run, name of the column): value}"""
    by_pk: dict[int, list[Column]] = {}
    for column in shown:
        if column.pk is not None:
            by_pk.setdefault(column.pk, []).append(column)
    held = RunValue.objects.filter(run__in=ids, column__in=by_pk) if by_pk else []
    return {
        (row.run_id, column.name): row.text if row.text is not None else getattr(row, column.attribute)
        for row in held
        for column in by_pk[row.column_id]
    }


def count(membership: Membership, query: str) -> tuple[int, bool]:
    """The number of runs that a query finds, and whether it stopped counting at `MOST_COUNTED`. Raises QueryProblem."""
    n = find_runs(membership, query).order_by().values("pk")[: MOST_COUNTED + 1].count()
    return min(n, MOST_COUNTED), n > MOST_COUNTED


def tags(workspace_id: int, most: int = 200) -> list[str]:
    """The tags in use, by name."""
    names = RunTag.objects.filter(run__experiment__workspace_id=workspace_id).order_by("name")
    return list(names.values_list("name", flat=True).distinct()[:most])


def views(workspace_id: int) -> "QuerySet[RunView]":
    return RunView.objects.filter(workspace_id=workspace_id).order_by("name")


def chosen_view(membership: Membership) -> RunView | None:
    """The view with which this person's table opens."""
    choice = RunViewChoice.objects.filter(workspace_id=membership.workspace_id, user=membership.user)
    row = choice.select_related("view").first()
    return row.view if row else None


def changes(membership: Membership) -> "QuerySet[RunChange]":
    return RunChange.objects.filter(workspace_id=membership.workspace_id)


def ids_of(membership: Membership, chosen: Iterable[Any]) -> list[int]:
    """The ids in `chosen` that are runs of the workspace, each once, newest first."""
    ours = Run.objects.present().filter(experiment__workspace_id=membership.workspace_id, pk__in=set(chosen))
    return list(ours.order_by("-pk").values_list("pk", flat=True))
