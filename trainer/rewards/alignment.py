"""Finds items of independent lists that say the same: criteria of two rubrics, reasons of three people.

For two lists it is the maximum-weight one-to-one matching (Hungarian) of the items that are similar enough; neither list is the
reference. For more lists the pairs are joined, the most similar first, as long as no owner has two items in one group.

Axes: N items of all lists laid end to end.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WORDS = "words"  # the name of the matcher below, as it is shown beside its results
WORDS_THRESHOLD = 0.4
_TOKEN = re.compile(r"\w+")
_GRAM = 4


def group(similarity_NN: Floats, owner_N: Sequence[int], threshold: float) -> list[list[int]]:
    """Groups of items that say the same, each with at most one item of an owner; every item is in exactly one.

    Groups come in the order of their first items. Two items of different owners are joined only when they are matched
    to each other and more similar than `threshold`.
    """
    owners = np.asarray(owner_N)
    edges: list[tuple[float, int, int]] = []
    for first, second in combinations(sorted(set(owner_N)), 2):
        rows, columns = np.flatnonzero(owners == first), np.flatnonzero(owners == second)
        block = similarity_NN[np.ix_(rows, columns)]
        # items that are not similar enough count as 0, so that they cannot push a good match aside
        for r, c in zip(
            *scipy.optimize.linear_sum_assignment(np.where(block > threshold, block, 0.0), maximize=True), strict=True
        ):
            if block[r, c] > threshold:
                edges.append((-float(block[r, c]), int(rows[r]), int(columns[c])))
    of = list(range(len(owner_N)))
    members = {item: [item] for item in of}
    for _, one, two in sorted(edges):
        a, b = of[one], of[two]
        if a == b or {owner_N[i] for i in members[a]} & {owner_N[i] for i in members[b]}:
            continue
        for item in members[b]:
            of[item] = a
        members[a] += members.pop(b)
    return sorted(sorted(items) for items in members.values())


def background(similarity_NN: Floats, owner_N: Sequence[int]) -> float | None:
    """The mean similarity of two items of one owner. An owner says nothing twice, so this is the similarity that the subject alone causes.

    None if no owner has two items.
    """
    owners = np.asarray(owner_N)
    same = (owners[:, None] == owners[None, :]) & ~np.eye(len(owners), dtype=bool)
    return float(similarity_NN[same].mean()) if same.any() else None


def words_similarity(texts: Sequence[str]) -> Floats:
    """The cosine of the counts of the beginnings of words, in [0, 1]: a similarity without a model of meaning."""
    counts = [Counter(word[:_GRAM] for word in _TOKEN.findall(text.lower())) for text in texts]
    column = {gram: place for place, gram in enumerate(sorted(set().union(*counts)))} if counts else {}
    vectors = np.zeros((len(texts), max(1, len(column))))
    for row, found in enumerate(counts):
        for gram, n in found.items():
            vectors[row, column[gram]] = n
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    similarity: Floats = np.clip(unit @ unit.T, 0.0, 1.0)
    return similarity
