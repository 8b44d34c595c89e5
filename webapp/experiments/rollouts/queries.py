"""The rollout viewer's reads: filters, sorting and keyset paging over one run's rollouts."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from django.db import connection
from django.db.models import BooleanField, Case, Count, F, FloatField, Func, Q, QuerySet, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from webapp.core.problems import Invalid

from .. import recipe_metrics
from ..models import Rollout, Run
from . import search_words
from .searching import WordSearch

Verdict = Literal["met", "unmet", "missing"]
Sort = Literal["newest", "place", "reward", "-reward", "-advantage", "-spread", "part", "-part", "-apart"]
Measure = Literal["rank", "value"]
MET: dict[str, bool | None] = {"met": True, "unmet": False, "missing": None}
# sort -> the columns of its order; `-` is descending. Every order is unique, as keyset paging needs.
ORDERS: dict[str, tuple[str, ...]] = {
    "newest": ("-step", "-phase", "-group", "-index"),  # the unique index read backwards
    "place": ("step", "phase", "group", "index"),
    "reward": ("score", "id"),
    "-reward": ("-score", "-id"),
    "-advantage": ("-told_advantage", "-id"),
    "-spread": ("-spread", "-step", "-phase", "group", "index"),
    "part": ("part_value", "id"),
    "-part": ("-part_value", "-id"),
    "-apart": ("-apart", "-id"),
    "found": ("-stored",),
}
KINDS: dict[str, Any] = {"phase": str, "id": int, "stored": int}
BEFORE = "before "
"""Begins the order in a cursor that leads to what comes before a row."""
MAX_CRITERIA = 200
MAX_REASONS = 20
MAX_STEPS = 2000  # the newest ones; an older step is found by its number
MAX_LOOKS, MAX_LOOKED_AT = 5, 1000
"""The most times that a search continues if other filters or phrases leave none of the rollouts with the words, and the number of rollouts
that it reads each time."""
NOT_BY_INDEX = (F("stored") + 0).desc()
"""The order of `found` in words that no index has. The database expects that a filter keeps a third of the rollouts, so it would walk an index of
the run in this order until the page is full. If the filter keeps none, it would read the whole run instead of those that have the words."""
MAX_SEARCHED = 20_000
"""Rollouts to search if no step is named: the newest ones, in whole steps. A named step is always searched whole."""


@dataclass(frozen=True)
class RolloutQuery:
    """A choice of rollouts. `criterion` is a criterion's id or its whole text; without it, `verdict` is that of any criterion.

    `part` names a part of the reward, whose value is from `low` to `high`, or missing with `lacking`. `between` names
    two parts that lie at least `apart` from each other, measured by `measure` (`distance`). `by` names the part to sort by, if it is not
    `part`. `excluded`: whether the
    response was left out of training. `example_key`: only of this prompt; an index has them. `text` is searched for in all texts of a
    rollout (`search_words.read`).
    """

    step: int | None = None
    phase: str | None = None
    example_key: str | None = None
    criterion: str | None = None
    verdict: Verdict | None = None
    excluded: bool | None = None
    part: str = ""
    low: float | None = None
    high: float | None = None
    lacking: bool = False
    by: str = ""
    between: tuple[str, str] | None = None
    apart: float = 0.0
    measure: Measure = "rank"
    text: str = ""

    @property
    def plain(self) -> bool:
        """Whether an index finds the rollouts."""
        narrowed = self.by or self.criterion or self.verdict or self.part or self.between or self.excluded is not None
        return self.step is not None or not narrowed


@dataclass(frozen=True)
class FoundRollouts:
    """A page, the oldest step that was searched if that was not all of them, and how many rollouts a search for words has left out because
    the index does not have them yet (`WordSearch.left_out`); if it has, `indexed` says how many the index has. `previous` leads to what
    comes before the page in the order; a search for words has none."""

    items: list[Rollout]
    next: str | None
    oldest_step: int | None
    waiting: int = 0
    indexed: int = 0
    previous: str | None = None


def rollouts(
    run: Run,
    wanted: RolloutQuery | None = None,
    *,
    sort: Sort | None = None,
    cursor: str | None = None,
    limit: int = 20,
    from_step: int | None = None,
) -> FoundRollouts:
    """One page, by default in the order of the requested step, otherwise the newest step first. Rollouts without a reward, or without the
    part
    by which the page is sorted, come last. `from_step`: without a cursor, the page begins at this step of the order `newest`.

    Raises Invalid at `cursor` if it belongs to another order, at `sort` if it needs a part that is not named, and at `from_step` if the
    order is another.
    """
    wanted = wanted or RolloutQuery()
    order = sort or ("place" if wanted.step is not None else "newest")
    _check(wanted, order)
    if from_step is not None and (order != "newest" or wanted.text):
        raise Invalid(
            "Only the order “newest” can begin at a step.", {"from_step": "sort by newest, and leave the text out"}
        )
    search = WordSearch(run, search_words.read(wanted.text), wanted.step, wanted.phase) if wanted.text else None
    if search and wanted.step is None and order in ("newest", "place"):
        return _newest_found(search, wanted, cursor, limit)
    rows, oldest = (
        (_rows(search, search.newest(MAX_SEARCHED), wanted), None) if search else _searched(run, wanted, order)
    )
    rows = _annotated(rows, wanted, order).filter(_condition(wanted))
    if from_step is None or cursor:
        return _page(rows, order, cursor, limit, oldest, search)
    page = _page(rows.filter(step__lte=from_step), order, None, limit, oldest, None)
    later = bool(page.items) and rows.filter(step__gt=from_step).exists()
    return replace(page, previous=_beside(BEFORE + order, page.items[0]) if later else None)


def _page(
    rows: QuerySet[Rollout], order: str, cursor: str | None, limit: int, oldest: int | None, search: WordSearch | None
) -> FoundRollouts:
    columns = ORDERS[order]
    back, values = _direction(cursor, order, columns) if cursor and not search else (False, None)
    if cursor and search:
        values = decode(cursor, order, columns)
    ordered = tuple(_turned(column) for column in columns) if back else columns
    if values is not None:
        rows = rows.filter(_after(ordered, values))
    found: list[Rollout] = list(rows.order_by(*ordered)[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    if search:
        return _fitting_page(search, found, more, order, limit)
    if back:
        found.reverse()
    earlier, later = (more, True) if back else (values is not None, more)
    following = _beside(order, found[-1]) if later and found else None
    return FoundRollouts(
        found, following, oldest, previous=_beside(BEFORE + order, found[0]) if earlier and found else None
    )


def _fitting_page(search: WordSearch, found: list[Rollout], more: bool, order: str, limit: int) -> FoundRollouts:
    """The rollouts that have the words, of those that may have them."""
    fitting, looked = search.fitting(found, limit)
    more = more or looked < len(found)
    return FoundRollouts(fitting, _beside(order, found[looked - 1]) if more else None, None, *search.left_out())


def _newest_found(search: WordSearch, wanted: RolloutQuery, cursor: str | None, limit: int) -> FoundRollouts:
    """Rollouts that were found, the newest first by when they were stored. Other filters and phrases are held against what has the words: a
    page may be short, or empty, where many have these and few fit; `next` continues from there."""
    columns = ORDERS["found"]
    before = decode(cursor, "found", columns)[0] if cursor else None
    most = limit + 1 if wanted.plain else MAX_LOOKED_AT
    kept: list[Rollout] = []
    left_out = search.left_out()
    for _ in range(MAX_LOOKS):
        numbers = search.newest(most, before)
        rows = _annotated(_rows(search, numbers, wanted), wanted, "found").filter(_condition(wanted))
        found = list(rows.order_by(NOT_BY_INDEX)[: limit + 1])
        fitting, looked = search.fitting(found, limit - len(kept))
        kept += fitting
        if looked:
            before = getattr(found[looked - 1], "stored")  # noqa: B009 - an annotation
        if looked < len(found):
            break
        if len(found) <= limit:
            if len(numbers) < most:
                return FoundRollouts(kept, None, None, *left_out)
            before = numbers[-1]
    return FoundRollouts(kept, encode("found", [before]), None, *left_out)


def _rows(search: WordSearch, numbers: list[int], wanted: RolloutQuery) -> QuerySet[Rollout]:
    """The rollouts of these numbers, as far as they are there and in the step and the phase: words of the index may share 32 bits."""
    rows = search.stored(numbers)
    if wanted.step is not None:
        rows = rows.filter(step=wanted.step)
    if wanted.example_key is not None:
        rows = rows.filter(example_key=wanted.example_key)
    return rows.filter(phase=wanted.phase) if wanted.phase else rows


def _turned(column: str) -> str:
    return column.removeprefix("-") if column.startswith("-") else f"-{column}"


def _direction(cursor: str, order: str, columns: tuple[str, ...]) -> tuple[bool, list[Any]]:
    """Whether the cursor leads backwards, and the values of the row where it stands."""
    try:
        return True, decode(cursor, BEFORE + order, columns)
    except Invalid:
        return False, decode(cursor, order, columns)


def _beside(order: str, row: Rollout) -> str:
    return encode(order, [getattr(row, column.removeprefix("-")) for column in ORDERS[order.removeprefix(BEFORE)]])


def _check(wanted: RolloutQuery, order: str) -> None:
    if order in ("part", "-part") and not (wanted.by or wanted.part):
        raise Invalid("Sorting by a part needs its name.", {"by": "name the part to sort by"})
    if order == "-apart" and not wanted.between:
        raise Invalid("Sorting by disagreement needs two parts.", {"between": "name two parts, separated by a comma"})


def _searched(run: Run, wanted: RolloutQuery, order: str) -> tuple[QuerySet[Rollout], int | None]:
    """The rollouts of the step and phase, and where the search stops if the run has more than the limit."""
    whole = Rollout.objects.filter(run=run)
    if wanted.example_key is not None:
        whole = whole.filter(example_key=wanted.example_key)
    rows = whole.filter(phase=wanted.phase) if wanted.phase else whole
    if wanted.step is not None:
        return rows.filter(step=wanted.step), None
    if wanted.plain and order in ("newest", "place"):
        return rows, None
    newest = whole.order_by("-step").values_list("step", flat=True)
    beyond = newest[MAX_SEARCHED : MAX_SEARCHED + 1].first()
    if beyond is None:
        return rows, None
    oldest = min(beyond + 1, newest[0])  # a step is searched whole, however large it is
    return rows.filter(step__gte=oldest), oldest


def _part(name: str) -> Any:
    return Cast(KeyTextTransform(name, "part_values"), FloatField())


def _annotated(rows: QuerySet[Rollout], wanted: RolloutQuery, order: str) -> QuerySet[Rollout]:
    """The rollouts with the values by which they are sorted and filtered; a missing value is sorted after all others."""
    missing = Value(float("-inf") if order.startswith("-") else float("inf"))
    rows = rows.annotate(score=Coalesce(F("reward"), missing, output_field=FloatField()))
    if order == "-advantage":
        rows = rows.annotate(told_advantage=Coalesce(F("advantage"), missing, output_field=FloatField()))
    if order == "-spread":
        rows = rows.annotate(spread=RawSQL(SPREAD, [], output_field=FloatField()))  # noqa: S611 - it has no parameters
    if wanted.part:
        rows = rows.annotate(valued=_part(wanted.part))
    if by := wanted.by or wanted.part:
        rows = rows.annotate(part_value=Coalesce(_part(by), missing, output_field=FloatField()))
    if wanted.between:
        rows = rows.annotate(apart=distance(*wanted.between, wanted.measure))
    return rows


def distance(first: str, second: str, measure: Measure) -> Any:
    """The distance between two parts of a rollout; null if one of them has no value.

    `value`: |a - b|. `rank`: |r_a - r_b|, of the places from 0 to 1 that the response has in its group by either part, equal values sharing
    their mean place; so parts of any scale compare. r_a - r_b is the mean of (sign(a - a') - sign(b - b')) / 2 over the other responses of
    the group that have both parts.
    """
    if measure == "value":
        return Func(_part(first) - _part(second), function="ABS", output_field=FloatField())
    names = [name for name in (first, second) for _ in range(2)]
    return RawSQL(RANKS_APART, [*names, first, second], output_field=FloatField())  # noqa: S611 - names are parameters


RANKS_APART = """(
    SELECT abs(sum(
        sign((experiments_rollout.part_values ->> %s)::float8 - (peer.part_values ->> %s)::float8)
        - sign((experiments_rollout.part_values ->> %s)::float8 - (peer.part_values ->> %s)::float8)
    )) / 2 / nullif(count(*) - 1, 0)
    FROM experiments_rollout AS peer
    WHERE peer.run_id = experiments_rollout.run_id AND peer.step = experiments_rollout.step
        AND peer.phase = experiments_rollout.phase AND peer."group" = experiments_rollout."group"
        AND peer.part_values ->> %s IS NOT NULL AND peer.part_values ->> %s IS NOT NULL
)"""


# between the best and the worst reward of the whole group; a group without rewards comes last
SPREAD = """(
    SELECT coalesce(max(peer.reward) - min(peer.reward), -1)
    FROM experiments_rollout AS peer
    WHERE peer.run_id = experiments_rollout.run_id AND peer.step = experiments_rollout.step
        AND peer.phase = experiments_rollout.phase AND peer."group" = experiments_rollout."group"
)"""


def _condition(wanted: RolloutQuery) -> Q:
    """The contents lie elsewhere on the disk, and the database takes no account of that. A CASE reads only those for which it is needed."""
    found = _of_columns(wanted)
    if not (wanted.criterion or wanted.verdict):
        return found
    judged = _judged(wanted.criterion, wanted.verdict)
    return Q(Case(When(found, then=judged), default=False, output_field=BooleanField())) if found else judged


def _of_columns(wanted: RolloutQuery) -> Q:
    found = Q()
    if wanted.excluded is not None:
        found &= Q(excluded=wanted.excluded)
    if wanted.part:
        found &= Q(part_values__has_key=wanted.part)
        if wanted.lacking:
            found &= Q(valued__isnull=True)
        if wanted.low is not None:
            found &= Q(valued__gte=wanted.low)
        if wanted.high is not None:
            found &= Q(valued__lte=wanted.high)
    if wanted.between:
        found &= Q(apart__gte=wanted.apart)
    return found


def _judged(criterion: str | None, verdict: str | None) -> Q:
    met = {"met": MET[verdict]} if verdict else {}
    if not criterion:
        return Q(content__contains={"criteria": [{"verdict": met}]})
    by_text = {"text": criterion, **({"verdict": met} if met else {})}
    by_id = {"verdict": {"criterion_id": criterion, **met}}
    return Q(RawSQL(CRITERION, [json.dumps([by_text]), json.dumps([by_id])], output_field=BooleanField()))  # noqa: S611


# the content is unpacked once for both: to unpack it takes longer than all else
CRITERION = """EXISTS (
    SELECT FROM (SELECT experiments_rollout.content -> 'criteria' AS criteria OFFSET 0) AS told
    WHERE told.criteria @> %s::jsonb OR told.criteria @> %s::jsonb
)"""


def _after(columns: tuple[str, ...], values: list[Any]) -> Q:
    """Rows that come later in the order: `a >= x and (a > x or (a = x and (b > y or ...)))`. An index begins at the first of these;
    without it, all rows that come before would be read."""
    condition = Q()
    for column, value in reversed(list(zip(columns, values, strict=True))):
        name = column.removeprefix("-")
        beyond = Q(**{f"{name}__{'lt' if column.startswith('-') else 'gt'}": value})
        condition = beyond | (Q(**{name: value}) & condition) if condition else beyond
    first = columns[0].removeprefix("-")
    return Q(**{f"{first}__{'lte' if columns[0].startswith('-') else 'gte'}": values[0]}) & condition


def encode(order: str, values: Sequence[Any]) -> str:
    """A cursor of a list in this order, behind the row with these values."""
    return urlsafe_b64encode(json.dumps([order, *values]).encode()).decode()


def decode(cursor: str, order: str, columns: tuple[str, ...]) -> list[Any]:
    """The values of these columns. Raises Invalid at `cursor` if it belongs to another list or order."""
    values: list[Any]
    try:
        made_for, *values = json.loads(urlsafe_b64decode(cursor.encode()))
        kinds = [KINDS.get(column.removeprefix("-"), (int, float)) for column in columns]
        fits = made_for == order and len(values) == len(columns)
        if not fits or not all(isinstance(v, kind) for v, kind in zip(values, kinds, strict=True)):
            raise ValueError
        if any(isinstance(value, int) and abs(value) >= 2**63 for value in values):
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise Invalid("The cursor cannot be used.", {"cursor": "it belongs to another list or order"}) from None
    return values


def facets(run: Run, step: int | None = None, counted: bool = True) -> dict[str, Any]:
    """The values of the filters: `{"steps": [{"step", "phase", "count"}], "criteria": [{"text", "met", "unmet", "missing"}], "parts":
    [{"name", "kind", "weight", "shadow", "judge", "low", "high", "valued", "missing"}], "expression", "excluded": [{"reason", "count"}]}`.

    All but `steps` is of `step`, or of the newest step; criteria most often met come first. `weight` and `expression` are those of the
    run's config, null and empty if it has none.
    `count` reads an index of all rollouts of the run; with `counted` False it is None, and the time does not grow with them.
    """
    steps = _counted_steps(run) if counted else _steps(run)
    chosen = step if step is not None else (steps[-1]["step"] if steps else None)
    rows = Rollout.objects.none() if chosen is None else Rollout.objects.filter(run=run, step=chosen)
    parts, expression = recipe_metrics.reward(run)
    return {
        "steps": steps,
        "criteria": _criteria(rows),
        "parts": _parts(parts, rows),
        "expression": expression,
        "excluded": _exclusions(rows),
    }


def _counted_steps(run: Run) -> list[dict[str, Any]]:
    places = (
        Rollout.objects.filter(run=run).values("step", "phase").annotate(count=Count("*"))
    )  # read from the index alone
    return [dict(place) for place in places.order_by("-step", "-phase")[:MAX_STEPS]][::-1]


# goes from each step and phase directly to the previous one
STEPS = """
WITH RECURSIVE place AS (
    (SELECT step, phase FROM experiments_rollout WHERE run_id = %s ORDER BY step DESC, phase DESC LIMIT 1)
    UNION ALL
    SELECT earlier.step, earlier.phase FROM place CROSS JOIN LATERAL (
        SELECT step, phase FROM experiments_rollout WHERE run_id = %s AND (step, phase) < (place.step, place.phase)
        ORDER BY step DESC, phase DESC LIMIT 1
    ) AS earlier
)
SELECT step, phase FROM place LIMIT %s
"""


def _steps(run: Run) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(STEPS, [run.pk, run.pk, MAX_STEPS])
        found = cursor.fetchall()
    return [{"step": step, "phase": phase, "count": None} for step, phase in found[::-1]]


def _parts(parts: list[dict[str, Any]], rows: QuerySet[Rollout]) -> list[dict[str, Any]]:
    """The parts that the rollouts have, those of the config first and in its order."""
    known = {each["name"]: each for each in parts}
    values: dict[str, list[float | None]] = {name: [] for name in known}
    for found in rows.values_list("part_values", flat=True):
        for name, value in found.items():
            values.setdefault(name, []).append(value)
    return [_part_facet(name, known.get(name, {}), found) for name, found in values.items() if found]


def _part_facet(name: str, part: dict[str, Any], values: list[float | None]) -> dict[str, Any]:
    there = [value for value in values if value is not None]
    return {
        "name": name,
        "kind": part.get("kind", ""),
        "weight": part.get("weight"),
        "shadow": bool(part.get("shadow", False)),
        "judge": part.get("judge", ""),
        "low": min(there, default=None),
        "high": max(there, default=None),
        "valued": len(there),
        "missing": len(values) - len(there),
    }


def _exclusions(rows: QuerySet[Rollout]) -> list[dict[str, Any]]:
    reasons = Counter(rows.filter(excluded=True).values_list("content__excluded", flat=True))
    return [{"reason": reason or "", "count": count} for reason, count in reasons.most_common(MAX_REASONS)]


def _criteria(rows: QuerySet[Rollout]) -> list[dict[str, Any]]:
    tally: dict[str, dict[str, Any]] = {}
    for criteria in rows.values_list("content__criteria", flat=True):
        for result in criteria or ():
            text, met = result["text"], result["verdict"]["met"]
            entry = tally.setdefault(text, {"text": text, "met": 0, "unmet": 0, "missing": 0})
            entry["missing" if met is None else "met" if met else "unmet"] += 1
    return sorted(tally.values(), key=lambda entry: (-entry["met"], entry["text"]))[:MAX_CRITERIA]
