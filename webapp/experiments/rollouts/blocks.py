"""Words of many rollouts as bytes, and which of the rollouts have a word.

A hit is a number of 64 bits: the number of a word and, in its low 16 bits, the place of a rollout that has it. Rows of the database each
have some neighbouring words: how many they are, their numbers, for each how many rollouts have it less one, and the places. A word of many
rollouts has a row for itself: a zero, its number, and a bit for each place.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Hits = NDArray[np.int64]
PLACE_BITS = 16
MOST, MOST_HITS = 1 << 14, 1 << 22
"""Rollouts and hits of one block. A search looks at each block, and a worker that merges blocks has all their hits in memory."""
FEWEST_MERGED = 4
FREQUENT = 512  # rollouts
NONE: Hits = np.empty(0, np.int64)
ROW = 1900  # bytes: what a page of Postgres has without a place of its own for long values


def hits(words: Iterable[Iterable[int]]) -> Hits:
    """The hits of rollouts, from the numbers of the words of each, in no order."""
    parts = [np.left_shift(np.fromiter(each, np.int64), PLACE_BITS) | place for place, each in enumerate(words)]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def distinct(hits: Hits) -> Hits:
    """Each hit once, sorted."""
    hits = np.sort(hits)
    return hits[_changes(hits)] if len(hits) else hits


def merged(parts: Sequence[tuple[int, Hits]]) -> Hits:
    """The sorted hits of neighbouring blocks as one, from the number of rollouts and the hits of each."""
    found, before = [], 0
    for size, each in parts:
        found.append(each + before)
        before += size
    whole = np.concatenate(found)
    whole.sort()
    return whole


def to_merge(blocks: Iterable[tuple[int, int]]) -> int:
    """The number of the blocks that become one, from the rollouts and the hits of each, the newest first.

    The older blocks always have more than all that are newer, but for a few, so blocks are few and each hit is written a few times.
    """
    count = size = hits = 0
    for place, (more, more_hits) in enumerate(blocks, 1):
        if size + more > MOST or hits + more_hits > MOST_HITS:
            break
        if place >= FEWEST_MERGED and more_hits <= hits:
            count = place
        size, hits = size + more, hits + more_hits
    return max(count, 1)


def packed(hits: Hits) -> list[tuple[int, bytes]]:
    """Rows of sorted hits: the number of the first word of each, and its bytes."""
    if not len(hits):
        return []
    starts = _changes(hits >> PLACE_BITS)
    numbers = (hits[starts] >> PLACE_BITS).astype("<i4")
    ends = np.append(starts[1:], len(hits))
    places = (hits & ((1 << PLACE_BITS) - 1)).astype("<u2")
    frequent = (ends - starts >= FREQUENT) & (16 * (ends - starts) > places[ends - 1])
    sizes = 6 + 2 * (ends - starts)
    cuts = _changes((np.cumsum(sizes) - sizes) // ROW)
    alone = np.flatnonzero(frequent)
    firsts = np.unique(np.concatenate([cuts, alone, alone + 1]))
    firsts = firsts[firsts < len(numbers)]
    rows = []
    for first, end in zip(firsts, np.append(firsts[1:], len(numbers)), strict=True):
        here = places[starts[first] : ends[end - 1]]
        if frequent[first]:
            bits = np.zeros(int(here[-1]) + 1, bool)
            bits[here] = True
            row = _bytes(0, numbers[first:end], np.packbits(bits))
        else:
            counts = (ends[first:end] - starts[first:end] - 1).astype("<u2")
            row = _bytes(end - first, numbers[first:end], counts, here)
        rows.append((int(numbers[first]), row))
    return rows


def _bytes(count: int, *arrays: NDArray[Any]) -> bytes:
    return b"".join(each.tobytes() for each in (np.array(count, "<u4"), *arrays))


def unpacked(rows: Iterable[bytes]) -> Hits:
    """The hits of rows, sorted if the rows are."""
    parts: list[Hits] = [np.empty(0, np.int64)]
    for row in rows:
        numbers, counts, places = _opened(row)
        here: Hits = np.repeat(numbers.astype(np.int64), counts) << PLACE_BITS
        here += places
        parts.append(here)
    return np.concatenate(parts)


def places(row: bytes, number: int) -> NDArray[np.uint16]:
    """The places of the rollouts that have the word, in order, from the row that would have it."""
    numbers, counts, found = _opened(row)
    at = int(np.searchsorted(numbers, number))
    if at == len(numbers) or numbers[at] != number:
        return found[:0]
    start = int(counts[:at].sum())
    return found[start : start + int(counts[at])]


def frequent(row: bytes) -> bool:
    """Whether it is the row of a word of many rollouts."""
    return not any(row[:4])


def _opened(row: bytes) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint16]]:
    count = int(np.frombuffer(row, "<u4", 1)[0])
    if not count:
        found = np.flatnonzero(np.unpackbits(np.frombuffer(row, np.uint8, offset=8))).astype(np.uint16)
        return np.frombuffer(row, "<i4", 1, 4), np.array([len(found)]), found
    numbers = np.frombuffer(row, "<i4", count, 4)
    counts = np.frombuffer(row, "<u2", count, 4 + 4 * count).astype(np.int64) + 1
    return numbers, counts, np.frombuffer(row, "<u2", offset=4 + 6 * count)


def _changes(values: NDArray[np.int64]) -> NDArray[np.intp]:
    """The places of values that differ from the one before."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1]))
