"""The rollout viewer's reads: filters, sorting and keyset paging over one run's rollouts."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Literal

from django.db.models import Count, F, FloatField, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from webapp.core.paging import Page
from webapp.core.problems import Invalid

from .models import Rollout, Run

Verdict = Literal["met", "unmet", "missing"]
Sort = Literal["newest", "place", "reward", "-reward"]
MET: dict[str, bool | None] = {"met": True, "unmet": False, "missing": None}
# sort -> the columns of its order; `-` counts down. Each ends in a unique order, as keyset paging needs.
ORDERS: dict[str, tuple[str, ...]] = {
    "newest": ("-step", "-phase", "-group", "-index"),  # the unique index read backwards
    "place": ("step", "phase", "group", "index"),
    "reward": ("score", "id"),
    "-reward": ("-score", "-id"),
}
MAX_CRITERIA = 200
MAX_STEPS = 2000  # the newest; what is older is found by its number


def rollouts(
    run: Run,
    *,
    step: int | None = None,
    phase: str | None = None,
    criterion: str | None = None,
    verdict: Verdict | None = None,
    sort: Sort | None = None,
    cursor: str | None = None,
    limit: int = 20,
) -> Page[Rollout]:
    """One page. `criterion` is a criterion's id or its whole text; without it, `verdict` is that of any criterion.

    By default in the order of the step asked for, else the newest step first. Rollouts without a reward come last.
    Raises Invalid at `cursor` if it belongs to another order.
    """
    order = sort or ("place" if step is not None else "newest")
    found = Rollout.objects.filter(run=run)
    if step is not None:
        found = found.filter(step=step)
    if phase:
        found = found.filter(phase=phase)
    if criterion or verdict:
        found = found.filter(_judged(criterion, verdict))
    columns = ORDERS[order]
    missing = float("-inf") if order == "-reward" else float("inf")
    found = found.annotate(score=Coalesce(F("reward"), Value(missing), output_field=FloatField()))
    if cursor:
        found = found.filter(_after(columns, _decode(cursor, order, columns)))
    rows: list[Rollout] = list(found.order_by(*columns)[: limit + 1])
    more, rows = len(rows) > limit, rows[:limit]
    return Page(rows, _encode(order, columns, rows[-1]) if more else None)


def _judged(criterion: str | None, verdict: str | None) -> Q:
    met = {"met": MET[verdict]} if verdict else {}
    if not criterion:
        return Q(content__contains={"criteria": [{"verdict": met}]})
    by_text = {"text": criterion, **({"verdict": met} if met else {})}
    by_id = {"verdict": {"criterion_id": criterion, **met}}
    return Q(content__contains={"criteria": [by_text]}) | Q(content__contains={"criteria": [by_id]})


def _after(columns: tuple[str, ...], values: list[Any]) -> Q:
    """Rows that come later in the order: `a > x or (a = x and (b > y or ...))`."""
    condition = Q()
    for column, value in reversed(list(zip(columns, values, strict=True))):
        name = column.removeprefix("-")
        beyond = Q(**{f"{name}__{'lt' if column.startswith('-') else 'gt'}": value})
        condition = beyond | (Q(**{name: value}) & condition) if condition else beyond
    return condition


def _encode(order: str, columns: tuple[str, ...], row: Rollout) -> str:
    values = [getattr(row, column.removeprefix("-")) for column in columns]
    return urlsafe_b64encode(json.dumps([order, *values]).encode()).decode()


def _decode(cursor: str, order: str, columns: tuple[str, ...]) -> list[Any]:
    values: list[Any]
    try:
        made_for, *values = json.loads(urlsafe_b64decode(cursor.encode()))
        kinds = [str if column.endswith("phase") else (int, float) for column in columns]
        fits = made_for == order and len(values) == len(columns)
        if not fits or not all(isinstance(v, kind) for v, kind in zip(values, kinds, strict=True)):
            raise ValueError
        if any(isinstance(value, int) and abs(value) >= 2**63 for value in values):
            raise ValueError
    except (ValueError, TypeError):
        raise Invalid("The cursor cannot be used.", {"cursor": "it belongs to another list or order"}) from None
    return values


def facets(run: Run, step: int | None = None) -> dict[str, Any]:
    """What can be filtered by: `{"steps": [{"step", "phase", "count"}], "criteria": [{"text", "met", "unmet",
    "missing"}]}`. Criteria are those of `step`, or of the newest step; the most often met come first."""
    places = Rollout.objects.filter(run=run).values("step", "phase").annotate(count=Count("id"))
    steps = list(places.order_by("-step", "-phase")[:MAX_STEPS])[::-1]
    chosen = step if step is not None else (steps[-1]["step"] if steps else None)
    rows = Rollout.objects.none() if chosen is None else Rollout.objects.filter(run=run, step=chosen)
    return {"steps": steps, "criteria": _criteria(rows)}


def _criteria(rows: QuerySet[Rollout]) -> list[dict[str, Any]]:
    tally: dict[str, dict[str, Any]] = {}
    for criteria in rows.values_list("content__criteria", flat=True):
        for result in criteria or ():
            text, met = result["text"], result["verdict"]["met"]
            entry = tally.setdefault(text, {"text": text, "met": 0, "unmet": 0, "missing": 0})
            entry["missing" if met is None else "met" if met else "unmet"] += 1
    return sorted(tally.values(), key=lambda entry: (-entry["met"], entry["text"]))[:MAX_CRITERIA]
