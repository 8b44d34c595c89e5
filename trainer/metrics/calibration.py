"""Does a stated probability come true as often as it says? Axes: C cases, B bins, D bootstrap draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .estimate import Estimate, Floats, bootstrap_ratio, bootstrap_sums, numbers, proportion

BINS = 10


@dataclass(frozen=True)
class Bin:
    """The cases with a probability in (low, high], the first bin with its lower end; `stated` is their mean."""

    low: float
    high: float
    stated: float | None
    happened: Estimate


@dataclass(frozen=True)
class Calibration:
    """`error`: expected calibration error. `brier`: mean squared error of the probabilities. `bins`: for the diagram."""

    error: Estimate
    brier: Estimate
    bins: tuple[Bin, ...]

    def json(self) -> dict[str, Any]:
        bins = [{**vars(each), "happened": each.happened.json()} for each in self.bins]
        return {"error": self.error.json(), "brier": self.brier.json(), "bins": bins}


def calibration(
    stated_C: Sequence[float | None],
    happened_C: Sequence[bool | None],
    bins: int = BINS,
    clusters_C: Sequence[object] | None = None,
) -> Calibration:
    """ECE = sum_b n_b / n |share that happened - mean stated| over bins of equal width (Naeini et al., 2015; Guo et
    al., 2017) and the Brier score (1950).

    Cases that lack one of the two are counted in `missing`. `clusters_C`: cases drawn together for the intervals of both
    measures, such as the pairs of one prompt; those of the bins stay Wilson's over cases. Raises ValueError for a probability outside [0, 1].
    """
    if len(stated_C) != len(happened_C):
        raise ValueError(f"{len(stated_C)} probabilities but {len(happened_C)} outcomes")
    p_C, y_C = numbers(stated_C), numbers(happened_C)
    known_C = ~np.isnan(p_C) & ~np.isnan(y_C)
    missing = int((~known_C).sum())
    p_C, y_C = p_C[known_C], y_C[known_C]
    if len(p_C) and not (p_C.min() >= 0 and p_C.max() <= 1):
        raise ValueError(f"probabilities must lie in [0, 1], found {p_C.min():g} to {p_C.max():g}")
    place_C = np.clip(np.ceil(p_C * bins).astype(int) - 1, 0, bins - 1)
    inside_CB = (place_C[:, None] == np.arange(bins)).astype(np.float64)
    columns_CF = np.column_stack([inside_CB, inside_CB * p_C[:, None], inside_CB * y_C[:, None]])
    empty = "no case has a probability and an outcome"
    clusters = None if clusters_C is None else [clusters_C[at] for at in np.flatnonzero(known_C)]
    error_C = (p_C - y_C) ** 2
    return Calibration(
        error=bootstrap_sums(
            columns_CF, lambda sums_DF: _ece(sums_DF, bins), clusters=clusters, missing=missing, empty=empty
        ),
        brier=bootstrap_ratio(error_C, np.ones(len(error_C)), clusters=clusters, missing=missing, empty=empty),
        bins=_bins(columns_CF.sum(0).reshape(3, bins), bins),
    )


def _ece(sums_DF: Floats, bins: int) -> Floats:
    n_DB, stated_DB, happened_DB = sums_DF[:, :bins], sums_DF[:, bins : 2 * bins], sums_DF[:, 2 * bins :]
    error: Floats = np.abs(happened_DB - stated_DB).sum(1) / n_DB.sum(1)
    return error


def _bins(sums: Floats, bins: int) -> tuple[Bin, ...]:
    return tuple(
        Bin(
            low=b / bins,
            high=(b + 1) / bins,
            stated=float(stated / n) if n else None,
            happened=proportion(round(happened), round(n), empty="no case in this bin"),
        )
        for b, (n, stated, happened) in enumerate(sums.T)
    )
