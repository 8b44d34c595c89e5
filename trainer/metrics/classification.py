"""Verdicts of few kinds against labels: confusion, accuracy, precision, recall and F1, with intervals.

Axes: C cases, V values, D bootstrap draws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .agreement import cohen
from .estimate import Estimate, Floats, bootstrap_estimate, proportion, resampled_kinds, undefined_estimate

Value = TypeVar("Value", bound=int | str)


@dataclass(frozen=True)
class Confusion:
    """`cells_VV[v][w]`: cases labelled `values[v]` that were judged `values[w]`; `missing_V[v]`: not judged at all.

    Cases without a label say nothing about the judge: they are in `unlabelled` and nowhere else.
    """

    values: tuple[Any, ...]
    cells_VV: tuple[tuple[int, ...], ...]
    missing_V: tuple[int, ...]
    unlabelled: int = 0

    @property
    def n(self) -> int:
        """Labelled cases, judged or not."""
        return sum(map(sum, self.cells_VV)) + self.missing

    @property
    def missing(self) -> int:
        return sum(self.missing_V)


def confusion(
    labels_C: Sequence[Value | None], verdicts_C: Sequence[Value | None], values: Sequence[Value]
) -> Confusion:
    """The counts. Raises ValueError for sequences of different lengths and for a value that is not in `values`."""
    if len(labels_C) != len(verdicts_C):
        raise ValueError(f"{len(labels_C)} labels but {len(verdicts_C)} verdicts")
    place = {value: at for at, value in enumerate(values)}
    unknown = {value for value in [*labels_C, *verdicts_C] if value is not None and value not in place}
    if unknown:
        raise ValueError(f"values {sorted(map(str, unknown))} are not among {list(values)}")
    cells = [[0] * len(values) for _ in values]
    missing = [0] * len(values)
    unlabelled = 0
    for label, verdict in zip(labels_C, verdicts_C, strict=True):
        if label is None:
            unlabelled += 1
        elif verdict is None:
            missing[place[label]] += 1
        else:
            cells[place[label]][place[verdict]] += 1
    return Confusion(tuple(values), tuple(map(tuple, cells)), tuple(missing), unlabelled)


def accuracy(table: Confusion) -> Estimate:
    """Right verdicts over labelled cases; a missing verdict is not right, and is counted in `missing`."""
    right = sum(table.cells_VV[v][v] for v in range(len(table.values)))
    return proportion(right, table.n, table.missing, "no case has a label")


def kappa(table: Confusion) -> Estimate:
    """Cohen's kappa (1960) between labels and the verdicts that exist."""
    places = range(len(table.values))
    pairs = [(v, w) for v in places for w in places for _ in range(table.cells_VV[v][w])]
    found = cohen(pairs) if pairs else undefined_estimate("no case has both a label and a verdict")
    return Estimate(**{**vars(found), "missing": table.missing})


def precision(table: Confusion, value: object) -> Estimate:
    """The share of the cases judged `value` that are labelled so."""
    at = table.values.index(value)
    judged = sum(row[at] for row in table.cells_VV)
    return proportion(table.cells_VV[at][at], judged, table.missing, f"nothing was judged {value}")


def recall(table: Confusion, value: object) -> Estimate:
    """The share of the cases labelled `value` that are judged so. A case with a missing verdict is not."""
    at = table.values.index(value)
    labelled = sum(table.cells_VV[at]) + table.missing_V[at]
    return proportion(table.cells_VV[at][at], labelled, table.missing_V[at], f"nothing is labelled {value}")


def f1(table: Confusion, value: object) -> Estimate:
    """Harmonic mean of precision and recall of one value: 2 TP / (judged + labelled)."""
    at = table.values.index(value)
    return _drawn(table, lambda cells_DVW: _per_value(cells_DVW)[2][:, at], f"{value} is neither label nor verdict")


def macro(table: Confusion) -> dict[str, Estimate]:
    """Unweighted means over values of precision, recall and F1, as in scikit-learn: 0 if a value gives 0/0.

    Values that are neither label nor verdict anywhere do not count. That 0 for 0/0 belongs to the published definition
    (PandaLM, 2023), so it is kept; `precision` and `recall` of one value say undefined instead.
    """

    def mean(which: int) -> Estimate:
        return _drawn(table, lambda cells_DVW: np.nan_to_num(_per_value(cells_DVW)[which]).sum(1) / used, "no cases")

    cells = _with_missing(table)
    used = int(((cells.sum(1) + cells.sum(0)[: len(table.values)]) > 0).sum())
    return {name: mean(which) for which, name in enumerate(("precision", "recall", "f1"))}


def _with_missing(table: Confusion) -> Floats:
    """(V, V + 1): the last column holds the cases without a verdict."""
    cells = np.asarray(table.cells_VV, dtype=np.float64).reshape(len(table.values), len(table.values))
    return np.column_stack([cells, np.asarray(table.missing_V, dtype=np.float64)])


def _per_value(cells_DVW: Floats) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and F1 of every value, each (D, V); NaN for 0/0."""
    values = cells_DVW.shape[1]
    right_DV = np.diagonal(cells_DVW[:, :, :values], axis1=1, axis2=2)
    judged_DV, labelled_DV = cells_DVW[:, :, :values].sum(1), cells_DVW.sum(2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return right_DV / judged_DV, right_DV / labelled_DV, 2 * right_DV / (judged_DV + labelled_DV)


def _drawn(table: Confusion, statistic: Any, empty: str) -> Estimate:
    """A statistic of the table with its bootstrap interval: the cells of a resample are multinomial."""
    cells = _with_missing(table)
    if not table.n:
        return undefined_estimate("no case has a label")
    value = float(statistic(cells[None])[0])
    if not np.isfinite(value):
        return undefined_estimate(empty, table.n, table.missing)
    draws = statistic(resampled_kinds(cells.ravel()).reshape(-1, *cells.shape))
    return bootstrap_estimate(value, table.n, draws, table.missing)


def by_criterion(
    human: Mapping[str, Sequence[bool | None]], judge: Mapping[str, Sequence[bool | None]]
) -> dict[str, dict[str, Any]]:
    """For each criterion the counts and accuracy, precision, recall, F1 and kappa of "met", as JSON.

    `human[criterion]` and `judge[criterion]` hold the verdicts on the same responses, None if one is missing.
    """
    found = {}
    for criterion, labels in human.items():
        said = judge.get(criterion, [None] * len(labels))
        table = confusion(labels, said, (False, True))
        found[criterion] = {
            "n": table.n,
            "missing": table.missing,
            "unlabelled": table.unlabelled,
            "cells": [list(row) for row in table.cells_VV],
            "accuracy": accuracy(table).json(),
            "precision": precision(table, True).json(),
            "recall": recall(table, True).json(),
            "f1": f1(table, True).json(),
            "kappa": kappa(table).json(),
        }
    return found
