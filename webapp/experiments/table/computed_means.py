"""The means of folded rows, computed now: as `family_means` stores them, bit by bit, but of the runs that a query finds."""

from typing import Any

import numpy as np
from django.db.models import BigIntegerField, F, Func, QuerySet
from numpy.typing import NDArray

from webapp.core.database import binary_rows

from . import family_means
from .among import Among
from .columns import Column
from .keyset import Place
from .models import KIN, RunValue

DENSE = 20
"""Ids for each value, up to which a place for each id takes little memory."""
FEW = 5000
"""Runs whose values are looked up one by one; for more, those of all runs are read."""


def means(found: "QuerySet[Any]", column: Column, seed: Column | None) -> list[Place]:
    """(mean, newest run with a value) of each folded row: over seeds, of which each counts once (`one_each`). `seed`: the column of seeds.

    The database would look for each value of each run by itself, because it cannot know how many runs a query finds. So runs, values and seeds
    are read by themselves, each from one index, and put together here.
    """
    kin = Func(KIN, F("experiment_id"), function="hashtextextended", output_field=BigIntegerField())
    ids, rows = binary_rows.packed(found.order_by().annotate(row=kin).values_list("pk", "row"), ["int8", "int8"])
    known, value = _values(ids, column.pk, column.attribute)
    ids, rows, value = ids[known], rows[known], value[known]
    if not len(ids):
        return []
    order, row = np.unique(rows, return_inverse=True)
    seeded, seeds = _values(ids, seed.pk if seed else None, "number")
    different, place = np.unique(seeds, return_inverse=True)
    # a run whose seed is not known counts by itself
    each, most = np.where(seeded, place, len(different) + np.arange(len(ids))), len(different) + len(ids)
    seed_of_row, by_seed = _meaned(row * most + each, np.clip(value, -family_means.HUGE, family_means.HUGE))
    _, mean = _meaned(seed_of_row // most, by_seed)
    newest = np.zeros(len(order), np.int64)
    np.maximum.at(newest, row, ids)
    return list(zip(mean.tolist(), newest.tolist(), strict=True))


def _values(
    ids: NDArray[np.int64], column_id: int | None, attribute: str
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """For each run, whether it has a value, and the value."""
    held = RunValue.objects.filter(column_id=column_id, **{f"{attribute}__isnull": False})
    wanted = held.filter(Among("run_id", ids.tolist())) if len(ids) <= FEW else held
    of, numbers = binary_rows.packed(wanted.order_by().values_list("run_id", attribute), ["int8", "float8"])
    if not len(of):
        return np.zeros(len(ids), bool), np.zeros(len(ids))
    if int(of.max()) - int(of.min()) < DENSE * len(of):
        return _looked_up(ids, of, numbers)
    order = np.argsort(of)
    of, numbers = of[order], numbers[order]
    at = np.searchsorted(of, ids).clip(max=len(of) - 1)
    return of[at] == ids, numbers[at]


def _looked_up(
    ids: NDArray[np.int64], of: NDArray[np.int64], numbers: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Like `_values`, by a place for each id between the lowest and the highest: faster than sorting."""
    first, size = int(of.min()), int(of.max() - of.min()) + 1
    known, value = np.zeros(size + 1, bool), np.zeros(size + 1)
    known[of - first], value[of - first] = True, numbers
    at = np.where((ids >= first) & (ids < first + size), ids - first, size)
    return known[at], value[at]


def _meaned(keys: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The different keys in order, and `family_means.MEAN` of the values of each: added one after the other, the lowest first."""
    order = np.argsort(values)
    order = order[np.argsort(keys[order], kind="stable")]
    keys, values = keys[order], values[order]
    begins = np.r_[True, keys[1:] != keys[:-1]]
    of = np.cumsum(begins) - 1
    mean = np.bincount(of, values) / np.bincount(of)
    last = np.r_[begins[1:], True]
    return keys[begins], np.clip(mean, values[begins], values[last])
