"""Rationale consistency: are a judge's reasons the human's reasons? (Rationale Consistency / MetaJudge, 2025)

A matcher gives `scores_HM[h, m]` in [0, 1] for human reason h and model reason m; everything here follows from it.
Axes: H human reasons, M model reasons in the order the judge gave them.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
HIT_THRESHOLD = 0.5  # ours; 0 is the paper's literal reading
REASONS_AT_EVALUATION = 5
_EQUAL = 1e-9  # totals closer than this are the same total, summed in another order


@dataclass(frozen=True)
class Matching:
    """A maximum-weight one-to-one matching: its total and, for each model reason, the human reason or -1."""

    total: float
    human_of_M: tuple[int, ...]
    hits_M: tuple[bool, ...]


def match(scores_HM: Floats, threshold: float = HIT_THRESHOLD) -> Matching:
    """The optimal matching of reasons. Of matchings with equal weight it has the most hits, then the earliest hits.

    A hit is a matched pair with a score above `threshold`. Raises ValueError for scores outside [0, 1].
    """
    _check(scores_HM)
    humans, models = scores_HM.shape if scores_HM.size else (0, 0)
    if not humans or not models:
        models = scores_HM.shape[1] if scores_HM.ndim == 2 else 0
        return Matching(0.0, (-1,) * models, (False,) * models)
    size = max(humans, models)
    square = np.zeros((size, size))
    square[:humans, :models] = scores_HM
    hit = np.zeros((size, size))
    hit[:humans, :models] = scores_HM > threshold
    rows, columns = _best_hits(_tight(square), hit, models)
    human_of = dict(zip(columns.tolist(), rows.tolist(), strict=True))
    chosen = tuple(human_of[m] if human_of[m] < humans else -1 for m in range(models))
    return Matching(
        total=float(square[rows, columns].sum()),
        human_of_M=chosen,
        hits_M=tuple(bool(h >= 0 and hit[h, m]) for m, h in enumerate(chosen)),
    )


def _check(scores_HM: Floats) -> None:
    if scores_HM.size and not (np.isfinite(scores_HM).all() and scores_HM.min() >= 0 and scores_HM.max() <= 1):
        raise ValueError("matching scores must lie in [0, 1]")


def _tight(weights: Floats) -> NDArray[np.bool_]:
    """The edges of all optimal perfect matchings of a square matrix: those with the reduced cost 0.

    Prices come from shortest paths in the residual graph of one optimum (Bellman-Ford; no negative cycle exists).
    """
    cost = -weights
    rows, columns = scipy.optimize.linear_sum_assignment(cost)
    slack = cost - cost[rows, columns][:, None]  # rows are 0..n-1 in order
    price = np.zeros(len(cost))
    for _ in range(len(cost)):
        shorter = np.minimum(price, (price[columns][:, None] + slack).min(0))
        if np.array_equal(shorter, price):
            break
        price = shorter
    tight: NDArray[np.bool_] = price[columns][:, None] + slack - price[None, :] < _EQUAL
    return tight


def _best_hits(tight: NDArray[np.bool_], hit: Floats, models: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The matching within `tight` with the most hits; of several, the lexicographically earliest."""
    forbidden = -10.0 * len(tight)  # cheaper than any number of hits
    bonus = 1 / (models + 1)  # all bonuses together weigh less than one hit

    def solve(favoured: list[int]) -> tuple[float, NDArray[np.intp], NDArray[np.intp]]:
        weight = hit.copy()
        weight[:, favoured] *= 1 + bonus
        rows, columns = scipy.optimize.linear_sum_assignment(np.where(tight, weight, forbidden), maximize=True)
        return float(weight[rows, columns].sum()), rows, columns

    kept: list[int] = []
    best, rows, columns = solve(kept)
    for m in range(models):
        value, candidate_rows, candidate_columns = solve([*kept, m])
        if value > best + bonus / 2:
            kept.append(m)
            best, rows, columns = value, candidate_rows, candidate_columns
    return rows, columns


def rationale_consistency(scores_HM: Floats, human_reasons: int) -> float | None:
    """`RC = S_total / |R_h|` of one sample, from the model's first five reasons; None without human reasons."""
    if human_reasons == 0:
        return None
    first_HM = scores_HM[:, :REASONS_AT_EVALUATION]
    _check(first_HM)
    # only its total counts, which is the same for all matchings of equal weight
    rows, columns = scipy.optimize.linear_sum_assignment(first_HM, maximize=True)
    return float(first_HM[rows, columns].sum()) / human_reasons


def average_precision(scores_HM: Floats, human_reasons: int, threshold: float = HIT_THRESHOLD) -> float | None:
    """`AP = sum_k P@k hit_k / |R_h|` over all of the model's reasons; None without human reasons, 0 without model reasons."""
    if human_reasons == 0:
        return None
    return precision_of(match(scores_HM, threshold), human_reasons)


def precision_of(found: Matching, human_reasons: int) -> float:
    """AP of reasons that are matched already. Raises ZeroDivisionError without human reasons."""
    hits = np.asarray(found.hits_M, dtype=np.float64)
    if not hits.size:
        return 0.0
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float((precision * hits).sum() / human_reasons)


def outcome(label: int, verdict: int | None) -> float:
    """1 if verdict and label have the same sign. A missing verdict is not right."""
    return float(verdict is not None and np.sign(verdict) == np.sign(label))


def hybrid(
    scores_HM: Floats, human_reasons: int, label: int, verdict: int | None, threshold: float = HIT_THRESHOLD
) -> float | None:
    """The reward `AP x outcome`, for a right verdict with the right reasons. None without human reasons."""
    precision = average_precision(scores_HM, human_reasons, threshold)
    return None if precision is None else precision * outcome(label, verdict)
