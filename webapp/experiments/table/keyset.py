"""Pages of the table in any order: every page takes the same time, and new runs do not shift the pages.

Runs without a value in the column come last, in both directions. Among equal values the newest run comes first, or last in ascending order.
An
order is a row of stretches (numbers, then words, then what is missing), each sorted by itself.
"""

import heapq
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet

from webapp.core.problems import Invalid

from ..models import Run
from .columns import STORED_FACTS, Column, Source
from .models import SHOWN_NAME, RunValue

ON_RUNS: dict[str, Any] = {
    "created": F("id"),
    "name": SHOWN_NAME,
    "state": F("state"),
    "experiment": F("experiment__name"),
    "recipe": F("recipe"),
    "model": F("model__name"),
    "dataset": F("dataset_version__dataset__name"),
    "group": F("group"),
    "by": F("created_by__name"),
    "step": F("step"),
    "started": F("started_at"),
    "ended": F("ended_at"),
}
MAY_BE_MISSING = ("started", "ended", "by", "model", "dataset")
Place = tuple[Any, int]
"""The place of a row in its stretch: its key, then the id of its run."""
PEEK = 200
"""Rows of an order that are checked one by one before the database is asked for those of a query."""


@dataclass(frozen=True)
class RowOrder:
    column: Column
    down: bool

    @property
    def name(self) -> str:
        return ("-" if self.down else "") + self.column.name


@dataclass(frozen=True)
class KeysetStretch:
    """`rows` has `key` and `at`, the run's id; both in the order's direction. They are those of `found`, if that is given. `beside`: other
    rows of the stretch, which are not among these. `ahead` is asked first for the rows after a place, so many of them; it may not know them."""

    rows: "QuerySet[Any, Any]"
    key: str
    at: str
    down: bool
    found: "QuerySet[Run] | None" = None
    beside: "Sequence[Place]" = ()
    ahead: "Callable[[Place | None, int], list[Place] | None] | None" = None

    def after(self, begun: "Place | None") -> "QuerySet[Any, Any]":
        """`rows` behind a place, in their order."""
        rows = _after(self, self.rows, *begun) if begun else self.rows
        sign = "-" if self.down else ""
        ordered = rows.order_by(*dict.fromkeys((f"{sign}{self.key}", f"{sign}{self.at}")))
        return ordered.values_list(self.key, self.at)


def page(found: "QuerySet[Run]", order: RowOrder, cursor: str | None, limit: int) -> tuple[list[int], str | None]:
    """The ids of a page, and the cursor of the next. Raises Invalid at `cursor`."""
    return walk(_stretches(found, order), order, cursor, limit)


def walk(
    stretches: Iterable[Callable[[], KeysetStretch]], order: RowOrder, cursor: str | None, limit: int
) -> tuple[list[int], str | None]:
    """The ids of a page that goes through the stretches, and the cursor of the next. Raises Invalid at `cursor`."""
    start, key, after = decoded(cursor, order)
    taken: list[tuple[int, Any, int]] = []
    for place, make in enumerate(stretches):
        if place < start or len(taken) > limit:
            continue
        stretch = make()
        begun = (key, after) if place == start and cursor else None
        taken += [(place, *row) for row in _next(stretch, begun, limit + 1 - len(taken))]
    more, taken = len(taken) > limit, taken[:limit]
    return [run_id for _, _, run_id in taken], _encoded(order, taken[-1]) if more else None


def _next(stretch: KeysetStretch, begun: Place | None, wanted: int) -> list[Place]:
    """The first `wanted` of the stretch after the place `begun`."""
    if stretch.ahead is not None and (known := stretch.ahead(begun, wanted)) is not None:
        return known
    found = _first(stretch, begun, wanted)
    if not stretch.beside:
        return found
    behind = [place for place in stretch.beside if not begun or (place < begun if stretch.down else place > begun)]
    return (heapq.nlargest if stretch.down else heapq.nsmallest)(wanted, [*found, *behind])


def _first(stretch: KeysetStretch, begun: Place | None, wanted: int) -> list[Place]:
    """The first `wanted` of `rows` after the place `begun`.

    A broad query finds most of the first rows of an order, and the database cannot know that: it guesses how many runs have such a value
    from all columns together, and then reads every run to sort those that it finds. So a few rows are looked at first.
    """
    ordered = stretch.after(begun)
    if stretch.found is None:
        return list(ordered[:wanted])
    near = list(ordered[:PEEK])
    among = set(stretch.found.filter(pk__in=[run_id for _, run_id in near]).values_list("pk", flat=True))
    found = [row for row in near if row[1] in among]
    if len(found) >= wanted or len(near) < PEEK:
        return found[:wanted]
    return list(ordered.filter(**{f"{stretch.at}__in": stretch.found.values("pk")})[:wanted])


def _stretches(found: "QuerySet[Run]", order: RowOrder) -> Iterator[Callable[[], KeysetStretch]]:
    column, down = order.column, order.down
    if column.source == Source.RUN and column.name not in STORED_FACTS:
        yield from _on_runs(found, column.name, down)
        return
    held = [column.attribute, *(["text"] if column.source == Source.CONFIG else [])]
    for attribute in held:
        yield lambda attribute=attribute: _of_values(found, column, attribute, down)  # type: ignore[misc]
    yield lambda: without(found, column, held)


def _on_runs(found: "QuerySet[Run]", name: str, down: bool) -> Iterator[Callable[[], KeysetStretch]]:
    rows = found.annotate(sorted_by=ON_RUNS[name])
    yield lambda: KeysetStretch(
        rows.filter(sorted_by__isnull=False) if name in MAY_BE_MISSING else rows, "sorted_by", "pk", down
    )
    if name in MAY_BE_MISSING:
        yield lambda: KeysetStretch(rows.filter(sorted_by__isnull=True), "pk", "pk", True)


def _of_values(found: "QuerySet[Run]", column: Column, attribute: str, down: bool) -> KeysetStretch:
    rows = RunValue.objects.filter(column_id=column.pk, **{f"{attribute}__isnull": False})
    return KeysetStretch(rows, attribute, "run_id", down, found)


def without(found: "QuerySet[Run]", column: Column, held: list[str]) -> KeysetStretch:
    """The runs that have no value in a column, the newest first."""
    given = Q(*((f"{attribute}__isnull", False) for attribute in held), _connector=Q.OR)
    having = RunValue.objects.filter(given, column_id=column.pk)
    return KeysetStretch(found.exclude(pk__in=having.values("run_id")), "pk", "pk", True)


def _after(stretch: KeysetStretch, rows: "QuerySet[Any, Any]", key: Any, after: int) -> "QuerySet[Any, Any]":
    """Rows after a place. The first condition is for the index, the second decides among equal values."""
    step = "lt" if stretch.down else "gt"
    if stretch.key == stretch.at:
        return rows.filter(**{f"{stretch.at}__{step}": after})
    decided = Q(**{f"{stretch.key}__{step}": key}) | Q(**{stretch.key: key, f"{stretch.at}__{step}": after})
    return rows.filter(decided, **{f"{stretch.key}__{step}e": key})


def _encoded(order: RowOrder, last: tuple[int, Any, int]) -> str:
    place, key, run_id = last
    value = {"time": key.isoformat()} if isinstance(key, datetime) else key
    return urlsafe_b64encode(json.dumps([order.name, place, value, run_id]).encode()).decode()


def decoded(cursor: str | None, order: RowOrder) -> tuple[int, Any, int]:
    """The stretch, the key and the run of the row behind which a page begins; zeros at the beginning. Raises Invalid at `cursor`."""
    if not cursor:
        return 0, None, 0
    try:
        name, place, key, run_id = json.loads(urlsafe_b64decode(cursor.encode()))
        if isinstance(key, dict):
            key = datetime.fromisoformat(key["time"])
        fits = name == order.name and isinstance(place, int) and isinstance(run_id, int) and _fits(order, place, key)
    except (ValueError, TypeError, KeyError, RecursionError):
        fits = False
    if not fits or not 0 <= run_id < 2**63:
        raise Invalid("This cursor does not belong to this list.", {"cursor": "take the cursor from `next`"})
    return place, key, run_id


def _fits(order: RowOrder, place: int, key: Any) -> bool:
    """Whether a key can be in this stretch. A cursor that was typed by hand must not send another type to the database."""
    name = order.column.name
    is_number = isinstance(key, (int, float)) and not isinstance(key, bool) and abs(key) < 1e308
    if order.column.source != Source.RUN or name in STORED_FACTS:
        words = order.column.source == Source.CONFIG and place == 1
        return place in (0, 1, 2) and (isinstance(key, str) and "\0" not in key if words else is_number)
    if name in ("started", "ended") and place == 0:
        return isinstance(key, datetime) and key.tzinfo is not None
    if name in ("created", "step") or place == 1:
        return isinstance(key, int) and 0 <= key < 2**63
    return isinstance(key, str) and "\0" not in key
