"""Searches of models that programs log with their runs. Unlike other rows they have metrics, measured on one dataset or on several."""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import Combinable

from webapp.tracking.models import SavedMetric, SavedModel

from .model_schemas import ModelDataset, ModelOrder, SearchSaved
from .searching import MODEL_TIMES, conditions, narrowed, narrowed_model, ordered, text_at, wrong

COLUMNS = {"name": "name", "model_id": "key", "source_run_id": "row__key", "model_type": "kind", **MODEL_TIMES}
ANY = Q()


def models(rows: "QuerySet[SavedModel]", given: SearchSaved) -> "QuerySet[SavedModel]":
    """The models that the filter finds, the newest first unless an order is given.

    A condition on a metric holds if one of its values fulfils it, on one of the given datasets if there are some. An order by a metric takes
    its newest value. Raises Refused.
    """
    on, asked = _on(given.datasets), conditions(given.filter)
    for place, condition in enumerate(asked):
        if condition.kind != "metrics":
            rows = narrowed_model(rows, place, condition, _operand)
            continue
        values = _values(condition.name).filter(on)
        if condition.value is not None:
            values = narrowed(values.exclude(value=math.nan), place, condition, F("value"))
        rows = rows.filter(~Exists(values) if condition.sign == "is null" else Exists(values))
    if given.datasets and not any(condition.kind == "metrics" for condition in asked):
        rows = rows.filter(Exists(SavedMetric.objects.filter(on, saved=OuterRef("pk"))))
    orders = [
        (f"{each.field_name} {'ASC' if each.ascending else 'DESC'}", partial(_operand, on=_on([each])))
        for each in given.order_by
    ]
    return ordered(rows, orders, ("-pk",))


def _operand(kind: str, name: str, on: Q = ANY) -> Combinable:
    if kind == "attributes" and name in COLUMNS:
        return F(COLUMNS[name])
    if kind == "metrics":
        return Subquery(_values(name).filter(on).order_by("-time", "-step", "pk").values("value")[:1])
    if kind in ("tags", "params"):
        return text_at(name, kind)
    wrong(f"models have no {kind} {name!r}; known are metrics, params, tags and {', '.join(COLUMNS)}")


def _values(metric: str) -> "QuerySet[SavedMetric]":
    return SavedMetric.objects.filter(saved=OuterRef("pk"), key=metric)


def _on(asked: Iterable[ModelDataset | ModelOrder]) -> Q:
    """Values on one of the datasets; all values, if none has a name."""
    found = Q()
    for each in asked:
        named: dict[str, Any] = {"dataset": each.dataset_name, "digest": each.dataset_digest}
        found |= Q(**{name: value for name, value in named.items() if value})
    return found
