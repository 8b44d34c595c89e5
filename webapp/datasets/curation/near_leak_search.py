"""Finds the prompts of one version that are nearly the same as a prompt in train of another version, or of the same one.

It uses MinHash, like `duplicates`. The tried prompts are taken BLOCK at a time, and each block is compared with a stream of the trained
ones.
For versions of any size, it needs the memory of one block (25 MB) and of the packed columns (25 bytes for each example).
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from django.db import IntegrityError, transaction
from numpy.typing import NDArray

from .. import queries
from ..columns import packed
from ..columns.packed import Mask
from ..leakage import near_leaks
from ..leakage.compared_versions import HELDOUT
from ..models import DatasetVersion, Example, LeakSearch
from .duplicates import BAND, LARGE_GROUP, WORDS, Signatures, band
from .leaks import signature_of

THRESHOLD = 0.8
BLOCK = 50_000  # prompts that are tried, compared at a time
ROWS = 1_000  # prompts that are trained on, compared with a block at a time
SHOWN = 5
Positions = NDArray[np.int64]


def look(trained_id: int, tried_id: int, side: str) -> None:
    """Searches and stores the result; a worker calls it. Nothing happens if a version was deleted."""
    rows = DatasetVersion.objects.select_related("dataset").in_bulk([trained_id, tried_id])
    if len(rows) < len({trained_id, tried_id}):
        return
    found = search(rows[trained_id], rows[tried_id], side)
    kept = {"form": near_leaks.FORM, "found": found}
    try:
        with transaction.atomic():
            LeakSearch.objects.update_or_create(trained_id=trained_id, tried_id=tried_id, side=side, defaults=kept)
    except IntegrityError:  # a version was deleted while we searched
        if DatasetVersion.objects.filter(pk__in=[trained_id, tried_id]).count() == len({trained_id, tried_id}):
            raise


def search(trained: DatasetVersion, tried: DatasetVersion, side: str = HELDOUT) -> dict[str, Any]:
    """The fields of `near_leaks.Near` besides its sides. Identical prompts are left to `leaks`."""
    columns = packed.split_columns({trained.pk, tried.pk})
    here, there = columns[trained.pk], columns[tried.pk]
    training = ~here.heldout
    looked = there.heldout if side == HELDOUT else there.train if side else np.ones(len(there.ids), bool)
    looked = looked & ~np.isin(there.prompts, here.prompts[training])
    leaked, shown = list[Positions](), list[tuple[int, int, float]]()
    for block in _parts(_signed(tried, _first(there.prompts, looked), side or None), BLOCK):
        index = _Index(block)
        for part in _parts(_signed(trained, _first(here.prompts, training)), ROWS):
            index.compare(part)
        leaked.append(index.positions[index.best >= THRESHOLD])
        shown += index.first(SHOWN - len(shown))
    prompts = there.prompts[np.concatenate([np.zeros(0, np.int64), *leaked])]
    return {
        "prompts": len(prompts),
        "examples": int((looked & np.isin(there.prompts, prompts)).sum()),
        "threshold": THRESHOLD,
        "shown": _named([(int(there.ids[a]), int(here.ids[b]), similarity) for a, b, similarity in shown]),
    }


Signed = tuple[int, Signatures]


class _Index:
    """The signatures of some prompts, sorted by each band, with the most similar one found for each."""

    def __init__(self, block: list[Signed]) -> None:
        self.positions = np.array([position for position, _ in block], np.int64)
        self._signatures = np.stack([signature for _, signature in block])
        self._orders, self._bands = [], []
        for at in range(0, WORDS, BAND):
            values = band(self._signatures, at)
            order = np.argsort(values, kind="stable")
            self._orders.append(order)
            self._bands.append(values[order])
        self.best = np.zeros(len(block), np.float32)
        self._by = np.full(len(block), -1, np.int64)

    def compare(self, part: list[Signed]) -> None:
        signatures = np.stack([signature for _, signature in part])
        for place, (order, values) in enumerate(zip(self._orders, self._bands, strict=True)):
            asked = band(signatures, place * BAND)
            low, high = np.searchsorted(values, asked, "left"), np.searchsorted(values, asked, "right")
            for i in np.flatnonzero(high > low).tolist():
                alike = order[low[i] : min(high[i], low[i] + LARGE_GROUP)]
                similar = (self._signatures[alike] == signatures[i]).mean(axis=1, dtype=np.float32)
                better = similar > self.best[alike]
                self.best[alike[better]] = similar[better]
                self._by[alike[better]] = part[i][0]

    def first(self, most: int) -> list[tuple[int, int, float]]:
        """The first similar pairs: (position of the tried prompt, position of the trained one, similarity)."""
        places = np.flatnonzero(self.best >= THRESHOLD)[: max(0, most)].tolist()
        return [(int(self.positions[i]), int(self._by[i]), float(self.best[i])) for i in places]


def _parts(signed: Iterator[Signed], size: int) -> Iterator[list[Signed]]:
    while part := list(islice(signed, size)):
        yield part


def _first(prompts: NDArray[np.int64], wanted: Mask) -> Mask:
    """The first of the wanted positions of each prompt."""
    places = np.flatnonzero(wanted)
    first = np.zeros(len(prompts), bool)
    first[places[np.unique(prompts[places], return_index=True)[1]]] = True
    return first


def _signed(version: DatasetVersion, wanted: Mask, split: str | None = None) -> Iterator[Signed]:
    if not wanted.any():
        return
    for position, line in queries.stream_canonical(version, split=split):
        if wanted[position]:
            yield position, signature_of(line)


def _named(shown: list[tuple[int, int, float]]) -> list[dict[str, Any]]:
    rows = Example.objects.filter(pk__in={each for a, b, _ in shown for each in (a, b)}).values("id", "key", "excerpt")
    named = {row.pop("id"): row for row in map(dict, rows)}
    return [
        {"example": a, **named[a], "trained": {"example": b, **named[b]}, "similarity": round(similarity, 3)}
        for a, b, similarity in shown
    ]
