"""Examples that cover a data set, the hard ones first (LongCat-Flash-Thinking-2601, 2026). Axes: N examples, D embedding."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def k_center(
    embeddings_ND: ArrayLike,
    ppl_N: Sequence[float] | NDArray[np.float64],
    k: int,
    tell: Callable[[int], None] = lambda picked: None,
) -> list[int]:
    """Indices of k examples, in the order in which they were picked (K-center greedy, Sener and Savarese, 2018).

    The first has the highest perplexity; each further one the largest `ppl * distance to the nearest picked example`,
    distance being 1 - cosine. Ties, and what differs by rounding only, go to the lowest index. One pass over the
    embeddings a pick; beside them it needs memory for a few numbers an example. Raises ValueError, naming the argument, for
    a zero vector, a negative perplexity, or a k that is not in 1..N.
    """
    unit_ND, ppl = unit_rows(embeddings_ND), np.asarray(ppl_N, dtype=np.float64)
    if len(ppl) != len(unit_ND):
        raise ValueError(f"ppl: {len(ppl)} values for {len(unit_ND)} embeddings")
    if ppl.min(initial=0.0) < 0:
        raise ValueError(f"ppl[{int(np.argmin(ppl))}]: a perplexity below 0")
    if not 1 <= k <= len(unit_ND):
        raise ValueError(f"k: {k} of {len(unit_ND)} examples")
    ppl = np.ldexp(ppl, -int(np.frexp(ppl.max())[1]))  # only their ratios count, and products stay finite
    digits = 12 if unit_ND.dtype == np.float64 else 5
    picked = [_first_highest(ppl)]
    nearest = np.full(len(ppl), 2.0)
    while len(picked) < k:
        last = picked[-1]
        distance = np.round(1.0 - unit_ND @ unit_ND[last], digits)
        np.minimum(nearest, np.maximum(distance, 0.0), out=nearest)
        nearest[last] = -1.0  # below every other; it stays the smallest
        picked.append(_first_highest(np.where(nearest < 0, -1.0, ppl * nearest)))
        tell(len(picked))
    return picked


def _first_highest(values: NDArray[np.float64]) -> int:
    """The lowest index whose value is the highest, up to rounding."""
    highest = float(values.max())
    return int(np.argmax(values >= highest - 1e-12 * abs(highest)))


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
