"""The table with seeds folded: runs of one experiment that differ only by their seed are one row, with mean and interval."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.db.models import Count, F, FilteredRelation, Max, Q, QuerySet, Window

from trainer.metrics.claims.verdict import mean_over_seeds
from trainer.metrics.estimate import Estimate
from webapp.accounts.models import Membership

from ..models import Run
from . import columns, family_means, keyset, queries
from .columns import Column
from .computed_means import means
from .conditions import condition
from .family_means import StoredMeans
from .family_order import Heads, Members, together
from .keyset import KeysetStretch, RowOrder
from .models import KIN, FamilyMean, RunValue
from .seeds import one_each


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
    """A page like `queries.page`; the order of a metric uses the mean, that of a config value the newest run of a row that has one."""
    order, shown, unknown = queries.resolved(membership, layout)
    if order.column.pk is None:
        order = RowOrder(columns.CREATED, order.down)
    runs = queries.FoundRuns(membership, condition(membership, layout.query), within)
    named = columns.resolve(membership.workspace_id, ["seed"])["seed"]
    seed = named if isinstance(named, Column) else None
    everything = within is None and not layout.query.strip()
    stored = family_means.stored_means(membership.workspace_id, order.column) if everything else None
    newest, following = keyset.walk(_stretches(runs, order, seed, stored), order, cursor, limit)
    rows = _rows(membership, runs, newest, shown, seed)
    return queries.TablePage(rows, following, order, shown, unknown)


def _stretches(
    runs: queries.FoundRuns, order: RowOrder, seed: Column | None, stored: StoredMeans | None
) -> Iterator[Callable[[], KeysetStretch]]:
    found, members = _with_kin(runs.all()), _members(runs)
    families = found.order_by().values("experiment_id", "kin").annotate(newest=Max("pk"))
    column, down = order.column, order.down
    if column.pk is None:
        newest = KeysetStretch(found, "pk", "pk", down)
        yield lambda: KeysetStretch(families, "newest", "newest", down, ahead=Heads(newest, members).first)
        return
    held = [column.attribute]
    if column.source == columns.Source.CONFIG:
        held = ["number", "text"]
        for attribute in held:
            yield lambda attribute=attribute: _by_newest(runs, column, attribute, down)
    else:
        yield lambda: _by_mean(found, order, seed, stored)
    any_of = Q(*((f"values__{attribute}__isnull", False) for attribute in held), _connector=Q.OR)
    given = Count("values", filter=any_of & Q(values__column_id=column.pk))
    lacking = keyset.without(found, column, held)
    rows = families.annotate(given=given).filter(given=0)
    yield lambda: KeysetStretch(rows, "newest", "newest", True, ahead=Heads(lacking, members, given).first)


def _with_kin(runs: "QuerySet[Any]") -> "QuerySet[Any]":
    with_kin: QuerySet[Any] = runs.annotate(kin=KIN)
    return with_kin


def _members(runs: queries.FoundRuns) -> Members:
    return lambda ids: _with_kin(runs.among(ids))


def _by_newest(runs: queries.FoundRuns, column: Column, attribute: str, down: bool) -> KeysetStretch:
    """Rows by a value of the config, which their runs share: by that of the newest run that has one."""
    given = Q(of_value__number__isnull=False) | Q(of_value__text__isnull=False)

    def held(found: "QuerySet[Any]") -> "QuerySet[Any]":
        of_value = FilteredRelation("values", condition=Q(values__column_id=column.pk))
        valued: QuerySet[Any] = _with_kin(found).annotate(of_value=of_value)
        return valued.filter(given)

    last = Window(Max("pk"), partition_by=[F("experiment_id"), F("kin")])
    newest = held(runs.all()).annotate(last=last).filter(pk=F("last"))
    values = RunValue.objects.filter(column_id=column.pk, **{f"{attribute}__isnull": False})
    heads = Heads(KeysetStretch(values, attribute, "run_id", down), lambda ids: held(runs.among(ids)))
    return KeysetStretch(values.filter(run_id__in=newest.values("pk")), attribute, "run_id", down, ahead=heads.first)


def _by_mean(found: "QuerySet[Any]", order: RowOrder, seed: Column | None, stored: StoredMeans | None) -> KeysetStretch:
    """All rows by their means. What is `stored` is not computed again."""
    if stored is None:
        rows: QuerySet[Any] = FamilyMean.objects.annotate(mean=F("number")).none()
        return KeysetStretch(rows, "mean", "newest", order.down, beside=means(found, order.column, seed))
    changed = means(stored.others(found), order.column, seed) if stored.changed else ()
    return KeysetStretch(stored.of(order.column), "mean", "newest", order.down, beside=changed)


def _rows(
    membership: Membership,
    runs: queries.FoundRuns,
    newest: Sequence[int],
    shown: Sequence[Column],
    seed: Column | None,
) -> list[FoldedRow]:
    """The rows. `newest`: a run of each row. The other runs of a row are those that the query finds as well."""
    kin = _with_kin(runs.among(together(newest)))
    members: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for experiment, name, pk, state in kin.order_by("pk").values_list("experiment_id", "kin", "pk", "state"):
        members.setdefault((experiment, name), []).append((pk, state))
    by_run = {pk: key for key, held in members.items() for pk, _ in held}
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
        return FoldedCell(column, estimate=mean_over_seeds(one_each(known, cast("list[float | None]", held))))
    return FoldedCell(column, words.pop() if len(words) == 1 else None, differ=len(words) if len(words) > 1 else 0)
