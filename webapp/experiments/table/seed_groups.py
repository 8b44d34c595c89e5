"""The table with seeds folded: runs of one experiment that differ only by their seed are one row, with mean and interval."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import (
    Avg,
    CharField,
    Count,
    F,
    FilteredRelation,
    Func,
    Max,
    Q,
    QuerySet,
    Value,
    Window,
)
from django.db.models.functions import Cast, Coalesce, Concat, Greatest, Least

from trainer.metrics.claims.verdict import mean_over_seeds
from trainer.metrics.estimate import Estimate
from webapp.accounts.models import Membership

from ..models import Run
from . import columns, family_means, keyset, queries
from .columns import Column
from .family_means import StoredMeans
from .keyset import KeysetStretch, RowOrder
from .models import KIN
from .seeds import one_each

NEAR = 20
"""Runs for each row of a page, which are looked at before all runs of the query are grouped."""


class OverRows(Func):
    """An aggregate over rows that are aggregates themselves. Django allows it only as a function of a window."""

    window_compatible = True


@dataclass(frozen=True)
class FoldedCell:
    """`estimate` over the runs of the row, if the column has numbers; otherwise `value`, which is None if the runs differ or have none."""

    column: Column
    value: float | str | None = None
    estimate: Estimate | None = None
    differ: int = 0  # the number of different values, if there are several


@dataclass(frozen=True)
class FoldedRow:
    """`newest` has the values that all its runs share. `seeds` as in their configs, sorted."""

    newest: queries.RunRow
    ids: tuple[int, ...]
    seeds: tuple[str, ...]
    states: tuple[tuple[str, int], ...]
    cells: tuple[FoldedCell, ...]

    @property
    def run(self) -> Run:
        return self.newest.run

    @property
    def name(self) -> str:
        """The name of its newest run; that of several is without the seed."""
        return self.run.name_over_seeds if len(self.ids) > 1 else str(self.run)


def page(
    membership: Membership,
    layout: queries.Layout,
    cursor: str | None = None,
    limit: int = queries.PAGE,
    within: Collection[int] | None = None,
) -> queries.TablePage[FoldedRow]:
    """A page like `queries.page`; the order uses the mean. A column without numbers has no mean: it orders by the newest run."""
    order, shown, unknown = queries.resolved(membership, layout)
    if order.column.pk is None:
        order = RowOrder(columns.CREATED, order.down)
    found = queries.find_runs(membership, layout.query, within).annotate(kin=KIN)
    named = columns.resolve(membership.workspace_id, ["seed"])["seed"]
    seed = named if isinstance(named, Column) else None
    everything = within is None and not layout.query.strip()
    stored = family_means.stored_means(membership.workspace_id, order.column) if everything else None
    for runs in _near_then_all(found, order, cursor, limit):
        newest, following = keyset.walk(_stretches(runs, order, seed, stored), order, cursor, limit)
        if following:
            break
    rows = _rows(membership, found, newest, shown, seed)
    return queries.TablePage(rows, following, order, shown, unknown)


def _near_then_all(
    found: "QuerySet[Any]", order: RowOrder, cursor: str | None, limit: int
) -> "Iterator[QuerySet[Any]]":
    """The runs among which the page is looked for, until it has a next one. Rows that have one of the newest runs come before all others, so if
    the newest first come, a page of few runs needs no grouping of all."""
    if order.down and order.column.pk is None:
        after = keyset.decoded(cursor, order)[2]
        before = found.filter(pk__lt=after) if cursor else found
        near = before.order_by("-pk").values_list("pk", flat=True)[NEAR * limit : NEAR * limit + 1]
        if (last := near.first()) is not None:
            yield found.filter(pk__gte=last)
    yield found


def _stretches(
    found: "QuerySet[Any]", order: RowOrder, seed: Column | None, stored: StoredMeans | None
) -> Iterator[Callable[[], KeysetStretch]]:
    families = found.order_by().values("experiment_id", "kin").annotate(newest=Max("pk"))
    column, attribute = order.column, order.column.attribute
    if column.pk is None:
        yield lambda: KeysetStretch(families, "newest", "newest", order.down)
        return
    yield lambda: _by_mean(found, order, seed.pk if seed else None, stored)
    given = Count("values", filter=Q(values__column_id=column.pk, **{f"values__{attribute}__isnull": False}))
    yield lambda: KeysetStretch(families.annotate(given=given).filter(given=0), "newest", "newest", True)


def _by_mean(found: "QuerySet[Any]", order: RowOrder, seed: int | None, stored: StoredMeans | None) -> KeysetStretch:
    """All rows by their means. What is `stored` is not computed again."""
    if stored is None:
        return KeysetStretch(_means(found, order.column, seed), "mean", "newest", order.down)
    changed = _means(stored.others(found), order.column, seed) if stored.changed else None
    return KeysetStretch(stored.of(order.column), "mean", "newest", order.down, beside=changed)


def _means(found: "QuerySet[Any]", column: Column, seed: int | None) -> "QuerySet[Any]":
    """For each row its `newest` run with a value and the `mean` that it shows: over seeds, of which each counts once (`one_each`). `seed`: the
    column of seeds. The runs are joined with their values and read once; as a condition of the values, `found` would read them again."""
    of_value = FilteredRelation("values", condition=Q(values__column_id=column.pk))
    of_seed = FilteredRelation("values", condition=Q(values__column_id=seed))
    alone = Concat(Value("run "), Cast("pk", CharField()))  # a run whose seed is not known counts by itself
    held = found.annotate(of_value=of_value, of_seed=of_seed).filter(**{f"of_value__{column.attribute}__isnull": False})
    each = held.annotate(seed=Coalesce(Cast("of_seed__number", CharField()), alone))
    bounded = Greatest(Least(f"of_value__{column.attribute}", family_means.HUGE), -family_means.HUGE)
    seeds = each.order_by().values("experiment_id", "kin", "seed").annotate(of=Avg(bounded), last=Max("pk"))
    row = [F("experiment_id"), F("kin")]
    means: QuerySet[Any] = seeds.annotate(
        mean=Window(OverRows(F("of"), function="AVG"), partition_by=row),
        newest=Window(OverRows(F("last"), function="MAX"), partition_by=row),
    )
    return means.filter(last=F("newest"))  # one line for each row


def _rows(
    membership: Membership,
    found: "QuerySet[Any]",
    newest: Sequence[int],
    shown: Sequence[Column],
    seed: Column | None,
) -> list[FoldedRow]:
    """The rows. `newest`: a run of each row. The other runs of a row are those that the query finds as well."""
    of = found.filter(pk__in=newest).values("experiment_id", "kin")
    wanted = {(row["experiment_id"], row["kin"]) for row in of}
    kin = found.filter(experiment__in={each for each, _ in wanted}, kin__in={each for _, each in wanted})
    members: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for experiment, name, pk, state in kin.order_by("pk").values_list("experiment_id", "kin", "pk", "state"):
        members.setdefault((experiment, name), []).append((pk, state))
    by_run = {pk: key for key, runs in members.items() for pk, _ in runs}
    everyone = list(by_run)
    asked = [*shown, seed] if seed else list(shown)
    values = queries.values_of(everyone, asked)
    rows = queries.rows(membership, newest, shown)
    return [_row(row, members[by_run[row.run.pk]], shown, values) for row in rows if row.run.pk in by_run]


def _row(
    newest: queries.RunRow,
    members: list[tuple[int, str]],
    shown: Sequence[Column],
    values: dict[tuple[int, str], float | str | None],
) -> FoldedRow:
    ids = [pk for pk, _ in members]
    seeds = sorted({value for pk in ids if isinstance(value := values.get((pk, "seed")), float)})
    known = [value if isinstance(value := values.get((pk, "seed")), float) else None for pk in ids]
    cells = tuple(cell(column, known, [values.get((pk, column.name)) for pk in ids]) for column in shown)
    states = tuple(Counter(state for _, state in members).most_common())
    return FoldedRow(newest, tuple(ids), tuple(f"{value:g}" for value in seeds), states, cells)


def cell(column: Column, known: list[float | None], held: list[float | str | None]) -> FoldedCell:
    """The cell of runs that have these seeds (None: not known) and values."""
    words = {value for value in held if value is not None}
    if column.source != columns.Source.CONFIG and words and all(isinstance(value, float) for value in words):
        numbers = [value if isinstance(value, float) else None for value in held]
        return FoldedCell(column, estimate=mean_over_seeds(one_each(known, numbers)))
    return FoldedCell(column, words.pop() if len(words) == 1 else None, differ=len(words) if len(words) > 1 else 0)
