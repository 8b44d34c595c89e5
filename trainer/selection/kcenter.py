"""Examples that cover a data set, the hard ones first (LongCat-Flash-Thinking-2601, 2026). Axes: N examples, D embedding."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_BATCH = 256
"""Picks between two passes over all embeddings."""
_FRONT = 2_048
"""The number of examples among which the next picks are looked for."""
_AT_ONCE = 8_192
"""Rows whose distances to a batch are in memory together."""
_ROUNDING = 1e-12


def k_center(
    embeddings_ND: ArrayLike,
    ppl_N: Sequence[float] | NDArray[np.float64],
    k: int,
    tell: Callable[[int], None] = lambda picked: None,
) -> list[int]:
    """Indices of k examples, in the order in which they were picked (K-center greedy, Sener and Savarese, 2018).

    The first has the highest perplexity; each further one has the largest `ppl * distance to the nearest picked example`,
    where distance is 1 - cosine. Ties, also up to rounding, go to the lowest index. There is one pass over the
    embeddings for up to 256 picks; beside them it needs memory for a few numbers an example. Raises ValueError, naming the argument, for
    a zero vector, a negative perplexity, or a k that is not in 1..N.
    """
    unit_ND, ppl = unit_rows(embeddings_ND), np.asarray(ppl_N, dtype=np.float64)
    if len(ppl) != len(unit_ND):
        raise ValueError(f"ppl: {len(ppl)} values for {len(unit_ND)} embeddings")
    if ppl.min(initial=0.0) < 0:
        raise ValueError(f"ppl[{int(np.argmin(ppl))}]: a perplexity below 0")
    if not 1 <= k <= len(unit_ND):
        raise ValueError(f"k: {k} of {len(unit_ND)} examples")
    ppl = np.ldexp(ppl, -int(np.frexp(ppl.max())[1]))  # only their ratios count, and the products stay finite
    nearest = np.full(len(ppl), 2.0)
    picked = pending = [_first_highest(ppl)]
    while len(picked) < k:
        _come_closer(nearest, unit_ND, pending)
        pending = _picks(ppl, nearest, unit_ND, min(_BATCH, k - len(picked)))
        picked = picked + pending
        tell(len(picked))
    return picked


def _picks(
    ppl: NDArray[np.float64], nearest: NDArray[np.float64], unit_ND: NDArray[np.floating], most: int
) -> list[int]:
    """The next picks, one or more. Values only fall, so the best of the front is the best of all while it is above the best of the
    others.
    """
    values = np.where(nearest < 0, -1.0, ppl * nearest)
    places, others = _front(values)
    rows_MD = unit_ND if len(places) == len(unit_ND) else unit_ND[places]
    weights, near = ppl[places], nearest[places]
    found: list[int] = []
    while len(found) < most:
        here = np.where(near < 0, -1.0, weights * near)
        best = _first_highest(here)
        if found and here[best] <= others + _ROUNDING * abs(others):
            break
        found.append(int(places[best]))
        np.minimum(near, _rounded(rows_MD @ rows_MD[best]), out=near)
        near[best] = -1.0
    return found


def _front(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], float]:
    """The places of the highest values, with all equal ones, ascending; and the highest of the other values."""
    if len(values) <= _FRONT:
        return np.arange(len(values)), -np.inf
    least = np.partition(values, len(values) - _FRONT)[len(values) - _FRONT]
    behind = values[values < least]
    return np.flatnonzero(values >= least), float(behind.max(initial=-np.inf))


def _come_closer(nearest: NDArray[np.float64], unit_ND: NDArray[np.floating], picks: list[int]) -> None:
    """Update the distances to the nearest pick with `picks`; the picks themselves get a value below every distance."""
    picks_DK = unit_ND[picks].T
    for start in range(0, len(unit_ND), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        np.minimum(nearest[rows], _rounded((unit_ND[rows] @ picks_DK).max(axis=1)), out=nearest[rows])
    nearest[picks] = -1.0


def _rounded(cosine: NDArray[np.floating]) -> NDArray[np.floating]:
    """Cosine distances without rounding errors."""
    digits = 12 if cosine.dtype == np.float64 else 5
    return np.maximum(np.round(1.0 - cosine, digits), 0.0)


def _first_highest(values: NDArray[np.float64]) -> int:
    """The lowest index whose value is the highest, up to rounding."""
    highest = float(values.max())
    return int(np.argmax(values >= highest - _ROUNDING * abs(highest)))


def unit_rows(embeddings_ND: ArrayLike) -> NDArray[np.floating]:
    """Rows of length 1; float32 stays float32. Raises ValueError for a zero vector."""
    vectors = np.asarray(embeddings_ND)
    if vectors.dtype != np.float32:
        vectors = vectors.astype(np.float64)
    largest = np.abs(vectors).max(axis=1, initial=0.0)  # dividing by it first keeps squares from over- and underflow
    if not (largest > 0).all():
        raise ValueError(f"embeddings[{int(np.argmin(largest))}]: a zero vector has no direction")
    scaled = vectors / largest[:, None]
    unit: NDArray[np.floating] = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return unit
