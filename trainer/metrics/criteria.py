"""A criterion judge against people, criterion by criterion.

Axes: C graded criteria of responses, F counts. A verdict is True (met), False (not met) or None (missing).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .classification import Confusion, confusion
from .estimate import Estimate, Floats, bootstrap_sums

NOT_MET, MET = 0, 1
SAME, UNJUDGED = "people and the judge say the same of everything", "nothing was judged"


@dataclass(frozen=True)
class Agreement:
    """`table`: people's verdicts down, the judge's across, not met before met.

    `accuracy` and `recall` count a missing verdict as wrong; `precision`, `kappa` and `lean` are over the verdicts that
    exist. `lean`: the share of criteria that the judge calls met, minus the share of people; above 0 the judge is milder.
    """

    table: Confusion
    accuracy: Estimate
    kappa: Estimate
    precision: Estimate
    recall: Estimate
    lean: Estimate


def agreement(
    people_C: Sequence[bool | None], judge_C: Sequence[bool | None], clusters_C: Sequence[object] | None = None
) -> Agreement:
    """The agreement of judge and people on criteria. Criteria that people left open are only in `table.unlabelled`.

    `clusters_C`: cases that are resampled together, such as the criteria of one prompt's responses: one hard response makes
    many verdicts wrong at once. Raises ValueError for sequences of different lengths.
    """
    table = confusion(people_C, judge_C, (False, True))
    kept = [at for at, label in enumerate(people_C) if label is not None]
    clusters = None if clusters_C is None else [clusters_C[at] for at in kept]
    columns_CF = np.array([_counts(bool(people_C[at]), judge_C[at]) for at in kept], dtype=np.float64).reshape(-1, 6)
    (tn, fp), (fn, tp) = table.cells_VV

    def over(statistic: Any, n: int, missing: int, empty: str, *, share: bool = False) -> Estimate:
        return bootstrap_sums(columns_CF, statistic, n=n, clusters=clusters, missing=missing, empty=empty, share=share)

    judged = tn + fp + fn + tp
    return Agreement(
        table,
        accuracy=over(
            lambda s: (s[:, 0] + s[:, 3]) / s.sum(1), table.n, table.missing, "people graded nothing", share=True
        ),
        kappa=over(_kappa, judged, table.missing, SAME if judged else UNJUDGED),
        precision=over(
            lambda s: s[:, 3] / (s[:, 1] + s[:, 3]), fp + tp, table.missing, "the judge calls nothing met", share=True
        ),
        recall=over(
            lambda s: s[:, 3] / (s[:, 2] + s[:, 3] + s[:, 5]),
            fn + tp + table.missing_V[MET],
            table.missing_V[MET],
            "people call nothing met",
            share=True,
        ),
        lean=over(lambda s: (s[:, 1] - s[:, 2]) / s[:, :4].sum(1), judged, table.missing, UNJUDGED),
    )


def _counts(label: bool, verdict: bool | None) -> list[int]:
    """One case in the columns tn, fp, fn, tp, missing of not met, missing of met."""
    row = [0] * 6
    row[4 + label if verdict is None else 2 * label + verdict] = 1
    return row


def _kappa(sums_DF: Floats) -> Floats:
    """Cohen's kappa (1960) of each row of counts; NaN if chance alone always agrees."""
    tn, fp, fn, tp = sums_DF[:, :4].T
    n = tn + fp + fn + tp
    chance = ((tp + fp) * (tp + fn) + (tn + fn) * (tn + fp)) / n**2
    observed = (tn + tp) / n
    kappa: Floats = np.where(chance < 1, (observed - chance) / np.where(chance < 1, 1 - chance, 1), np.nan)
    return kappa
