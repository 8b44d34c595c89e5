"""Near-duplicates by meaning (SemDeDup, Abbas et al., 2023): compared within clusters of embeddings. Axes: N examples, D embedding, C
clusters."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .kcenter import unit_rows

_PASSES = 8
_AT_ONCE = 8_192
"""Rows whose cosines with every centre are in memory together."""
_ROUNDING = 1e-5
Vectors = NDArray[np.floating]
Places = NDArray[np.int64]


def near_duplicates(
    embeddings_ND: ArrayLike,
    likeness: float,
    seed: int = 0,
    size: int = 500,
    tell: Callable[[int], None] = lambda done: None,
) -> Places:
    """For each example [N], the index of the example that stays for it; its own index if it stays itself.

    Spherical k-means makes about N / `size` clusters. Within each, starting with the example that is least like the centre, an
    example is removed if one that stays before it has a cosine of `likeness` or more. So nothing is removed by a chain of likenesses,
    and the unusual example stays. Alike examples in two clusters are not found. Memory: the embeddings, and a few numbers a row for
    each of C clusters for 8,192 rows at once. Raises ValueError for a zero vector.
    """
    unit_ND = unit_rows(embeddings_ND)
    stays_N = np.arange(len(unit_ND))
    done = 0
    for places in _clusters(unit_ND, max(1, round(len(unit_ND) / size)), seed):
        for place, stayer in _within(unit_ND, places, likeness):
            stays_N[place] = stayer
        done += len(places)
        tell(done)
    return stays_N


def _clusters(unit_ND: Vectors, count: int, seed: int) -> Iterator[Places]:
    """The places of each cluster, those least like its centre first; equally like ones stay in their order."""
    if not len(unit_ND):
        return
    draw = np.random.default_rng(seed)
    centres_CD = unit_ND[np.sort(draw.choice(len(unit_ND), count, replace=False))]
    nearest_N, like_N = _nearest(unit_ND, centres_CD)
    for _ in range(_PASSES):
        sums_CD = np.zeros_like(centres_CD)
        np.add.at(sums_CD, nearest_N, unit_ND)
        lengths = np.linalg.norm(sums_CD, axis=1, keepdims=True)
        centres_CD = np.where(lengths > 0, sums_CD / np.maximum(lengths, 1e-30), centres_CD)
        nearest_N, like_N = _nearest(unit_ND, centres_CD)
    order = np.lexsort((np.arange(len(like_N)), np.round(like_N, 5), nearest_N))
    edges = np.flatnonzero(np.diff(nearest_N[order])) + 1
    yield from np.split(order, edges)


def _nearest(unit_ND: Vectors, centres_CD: Vectors) -> tuple[Places, Vectors]:
    nearest, like = np.empty(len(unit_ND), np.int64), np.empty(len(unit_ND), unit_ND.dtype)
    for start in range(0, len(unit_ND), _AT_ONCE):
        cosine = unit_ND[start : start + _AT_ONCE] @ centres_CD.T
        nearest[start : start + _AT_ONCE] = cosine.argmax(axis=1)
        like[start : start + _AT_ONCE] = cosine.max(axis=1)
    return nearest, like


def _within(unit_ND: Vectors, places: Places, likeness: float) -> Iterator[tuple[int, int]]:
    """Pairs (removed place, place that stays for it) of one cluster."""
    waiting = places
    while len(waiting) > 1:
        first, waiting = int(waiting[0]), waiting[1:]
        alike = unit_ND[waiting] @ unit_ND[first] >= likeness - _ROUNDING
        for place in waiting[alike]:
            yield int(place), first
        waiting = waiting[~alike]
