"""The table in groups: runs with the same value of the config, the same tag or the same fact are one row, with means over seeds."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection, models
from django.db.models.functions import Coalesce, Concat, NullIf

from webapp.accounts.models import Membership
from webapp.core.problems import Invalid

from ..models import Run
from . import columns, keyset, queries, seed_groups
from .among import Among, array_text
from .columns import Column, Source
from .language import QueryProblem, parse, quote_text
from .models import RunColumn, RunTag
from .queries import Layout
from .seed_groups import FoldedCell

MOST_RUNS = 5000
"""Runs in the groups of a page, so that its time does not grow with the workspace. The page says if there are more."""
MOST_NAMES = 300  # paths of configs in the choice of a page: programs may log any number of them
TAG = "tag"
TAGS = Column(TAG, "Tag", Source.RUN, TAG)  # orders groups, and no runs
FACTS = ("experiment", "recipe", "model", "dataset", "group", "state", "by")
TEXT = models.TextField()
AS_SHOWN = {
    "dataset": models.Case(  # of no version it would be " v"
        models.When(
            dataset_version__isnull=False,
            then=Concat(
                "dataset_version__dataset__name", models.Value(" v"), "dataset_version__number", output_field=TEXT
            ),
        ),
        output_field=TEXT,
    ),
    "by": Coalesce(NullIf("created_by__name", models.Value("")), "created_by__email", output_field=TEXT),
}
"""Facts whose cells say more, or something else, than the order reads."""
LABELS = {TAG: "Tag"} | {name: columns.FACTS[name] for name in FACTS}
Value = float | str | None
Held = dict[str, dict[int, Value]]
"""The values of runs by the name of a column, then by the run. A run without a value is left out."""
NUMBERS = ("number", "low", "high")
VALUES = """
SELECT column_id, run_id, text, number, low, high FROM experiments_runvalue
WHERE run_id = ANY(%(runs)s::bigint[]) AND column_id = ANY(%(columns)s)
"""


@dataclass(frozen=True)
class GroupRow:
    """Runs with one `value`; None: those without a value. `ids` are newest first, `cells` are as in a folded row. `query` finds the runs;
    None: it would be longer than a query may be."""

    value: Value
    ids: tuple[int, ...]
    seeds: tuple[str, ...]
    states: tuple[tuple[str, int], ...]
    cells: tuple[FoldedCell, ...]
    query: str | None


@dataclass(frozen=True)
class GroupPage(queries.TablePage[GroupRow]):
    by: str = ""
    partial: bool = False  # the query finds more runs; the newest `MOST_RUNS` are grouped


def names(workspace_id: int, chosen: str = "") -> dict[str, str]:
    """{name: its words} of everything by which runs can be grouped: of the paths of configs the first `MOST_NAMES`, and the chosen one."""
    rows = RunColumn.objects.filter(workspace_id=workspace_id, source=Source.CONFIG).order_by("path")
    paths = list(rows.values_list("path", flat=True)[:MOST_NAMES])
    if chosen.startswith(columns.CONFIG) and (path := chosen.removeprefix(columns.CONFIG)) not in paths:
        paths.append(path)
    return LABELS | {columns.CONFIG + path: path for path in paths}


def page(membership: Membership, layout: Layout, cursor: str | None = None, limit: int = queries.PAGE) -> GroupPage:
    """Raises QueryProblem, and Invalid at `group`, `sort` or `cursor`."""
    order, shown, unknown = _resolved(membership, layout)
    by, seed = _columns(membership, layout.group)
    found = queries.find_runs(membership, layout.query)
    runs = dict(found.order_by("-pk").values_list("pk", "state")[: MOST_RUNS + 1])
    partial = len(runs) > MOST_RUNS
    states = dict(list(runs.items())[:MOST_RUNS])
    groups = _groups(states, by, layout.group)
    ordered = _ordered(groups, order, by, seed, layout.group)
    start = _start(cursor, order, layout.group, ordered)
    keys = ordered[start : start + limit]
    rows = _rows([groups[key] for key in keys], states, shown, seed, layout)
    following = _encoded(order, layout.group, keys[-1]) if start + limit < len(ordered) else None
    return GroupPage(rows, following, order, shown, unknown, layout.group, partial)


def _resolved(membership: Membership, layout: Layout) -> tuple[keyset.RowOrder, tuple[Column, ...], dict[str, str]]:
    """Like `queries.resolved`, with the order of the groups: a fact of single runs, such as their names, orders by the newest run."""
    if layout.group == TAG and layout.sort.removeprefix("-") == TAG:
        _, shown, unknown = queries.resolved(membership, replace(layout, sort=queries.NEWEST))
        return keyset.RowOrder(TAGS, layout.sort.startswith("-")), shown, unknown
    order, shown, unknown = queries.resolved(membership, layout)
    if order.column.pk is None and order.column.name != layout.group:
        order = keyset.RowOrder(columns.CREATED, order.down)
    return order, shown, unknown


def _columns(membership: Membership, by: str) -> tuple[Column | None, Column | None]:
    """The column by which runs are grouped, None for a tag or a fact, and the one with the seeds. Raises Invalid at `group`."""
    named = columns.resolve(membership.workspace_id, ["seed", *([] if by in LABELS else [by])])
    column, seed = named.get(by), named["seed"]
    if by not in LABELS and not (isinstance(column, Column) and column.source == Source.CONFIG):
        why = (
            column.message if isinstance(column, columns.UnknownColumn) else f"{by} is neither a config value nor a tag"
        )
        raise Invalid("The runs cannot be grouped like this.", {"group": why})
    return (column if isinstance(column, Column) else None), (seed if isinstance(seed, Column) else None)


@dataclass
class _Group:
    value: Value
    ids: list[int]


def _groups(states: Mapping[int, str], by: Column | None, name: str) -> "dict[str | float | None, _Group]":
    """The groups by value; texts that differ only in capital letters are one, as in queries. `ids` stay in the order of the runs."""
    held: dict[int, list[Value]] = {}
    for run_id, value in _held(list(states), by, name):
        held.setdefault(run_id, []).append(value)
    found: dict[str | float | None, _Group] = {}
    for run_id in states:
        for value in held.get(run_id, [None]):
            key = value.lower() if isinstance(value, str) else value
            found.setdefault(key, _Group(value, [])).ids.append(run_id)
    return found


def _held(ids: list[int], by: Column | None, name: str) -> Iterable[tuple[int, Value]]:
    if by is not None:
        return _values(ids, [by])[by.name].items()
    if name == TAG:
        return RunTag.objects.filter(Among("run_id", ids)).order_by("name").values_list("run_id", "name")
    if name == "by":
        people = Run.objects.filter(Among("pk", ids)).values_list("pk", "created_by__name", "created_by__email")
        return [(run_id, called or address) for run_id, called, address in people]
    facts = Run.objects.filter(Among("pk", ids)).values_list("pk", keyset.ON_RUNS[name])
    return [(run_id, value or None) for run_id, value in facts]


def _values(ids: Collection[int], shown: Iterable[Column]) -> Held:
    """Like `queries.values_of`, without an object for each of the many values."""
    by_pk: dict[int, list[Column]] = {}
    for column in shown:
        if column.pk is not None:
            by_pk.setdefault(column.pk, []).append(column)
    found: Held = {column.name: {} for each in by_pk.values() for column in each}
    if not by_pk:
        return found
    with connection.cursor() as cursor:
        cursor.execute(VALUES, {"runs": array_text(ids), "columns": list(by_pk)})
        rows = cursor.fetchall()
    places = {
        pk: [(found[column.name], NUMBERS.index(column.attribute)) for column in each] for pk, each in by_pk.items()
    }
    for column_id, run_id, text, *numbers in rows:
        for held, place in places[column_id]:
            held[run_id] = text if text is not None else numbers[place]
    return found


def _facts(ids: Collection[int], shown: Iterable[Column]) -> Held:
    """The words of the facts that several runs can share. A run without one has "", so that it shares none."""
    names = [column.name for column in shown if column.pk is None and column.name in FACTS and column.name != "state"]
    if not names:
        return {}
    held = {f"fact_{name}": AS_SHOWN.get(name, keyset.ON_RUNS[name]) for name in names}
    rows = list(Run.objects.filter(Among("pk", ids)).annotate(**held).values_list("pk", *held))
    return {name: {row[0]: row[place] or "" for row in rows} for place, name in enumerate(names, 1)}


def _ordered(
    groups: "dict[str | float | None, _Group]",
    order: keyset.RowOrder,
    by: Column | None,
    seed: Column | None,
    name: str,
) -> "list[str | float | None]":
    """The keys of the groups: by their value, by the mean of a column, or by their newest run. Groups without a value come last."""
    if order.column.name == name:
        ranks: dict[Any, Any] = {key: _rank(key) for key in groups}
    elif order.column.pk is not None:
        column, everyone = order.column, {pk for each in groups.values() for pk in each.ids}
        values = _values(everyone, [column, *([seed] if seed else [])])
        cells = {
            key: seed_groups.cell(column, _seeds(each.ids, values), _of(column, each.ids, values))
            for key, each in groups.items()
        }
        ranks = {key: _mean(cell) for key, cell in cells.items()}
    else:
        ranks = {key: (0, each.ids[0]) for key, each in groups.items()}
    known = sorted((key for key in groups if ranks[key] is not None), key=lambda key: ranks[key], reverse=order.down)
    return [*known, *(key for key in groups if ranks[key] is None)]


def _rank(value: Value) -> tuple[int, float | str] | None:
    return None if value is None else (isinstance(value, str), value)


def _mean(cell: FoldedCell) -> tuple[int, float | str] | None:
    return _rank(cell.estimate.value if cell.estimate else cell.value)


def _of(column: Column, ids: Iterable[int], values: Held) -> list[Value]:
    return list(map(values.get(column.name, {}).get, ids))


def _seeds(ids: Iterable[int], values: Held) -> list[float | None]:
    return [value if isinstance(value, float) else None for value in map(values.get("seed", {}).get, ids)]


def _rows(
    groups: "list[_Group]", states: Mapping[int, str], shown: tuple[Column, ...], seed: Column | None, layout: Layout
) -> list[GroupRow]:
    everyone = {pk for each in groups for pk in each.ids}
    values = _values(everyone, [*shown, *([seed] if seed else [])]) | _facts(everyone, shown)
    rows = []
    for each in groups:
        known = _seeds(each.ids, values)
        seeds = tuple(f"{value:g}" for value in sorted({value for value in known if value is not None}))
        cells = tuple(seed_groups.cell(column, known, _of(column, each.ids, values)) for column in shown)
        counted = tuple(Counter(states[pk] for pk in each.ids).most_common())
        rows.append(GroupRow(each.value, tuple(each.ids), seeds, counted, cells, _query(layout, each.value)))
    return rows


def _query(layout: Layout, value: Value) -> str | None:
    """The query of the table, and the condition for the value; None if both together are too long for a query."""
    name = quote_text(layout.group)
    told = value if isinstance(value, str) else repr(value)
    term = f"-has:{name}" if value is None else f"{name}={quote_text(told)}"
    query = f"{layout.query} {term}".strip()
    try:
        parse(query)
    except QueryProblem:
        return None
    return query


def _encoded(order: keyset.RowOrder, by: str, key: Value) -> str:
    return urlsafe_b64encode(json.dumps([order.name, by, key]).encode()).decode()


def _start(cursor: str | None, order: keyset.RowOrder, by: str, ordered: "list[str | float | None]") -> int:
    """The place after the last group of the page before. Raises Invalid at `cursor`."""
    if not cursor:
        return 0
    try:
        name, group, key = json.loads(urlsafe_b64decode(cursor.encode()))
        if (name, group) == (order.name, by):
            return ordered.index(key) + 1
    except (ValueError, TypeError, RecursionError):
        pass
    raise Invalid("This cursor does not belong to this list.", {"cursor": "take the cursor from `next`"})
