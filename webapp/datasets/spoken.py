"""The words of many texts, gathered for the index of `words`: each word once, with the texts that hold it.

Looking every word up on its own took a fifth of an import's time; here tens of thousands of texts are cut, numbered and
sorted at once, away from the database.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import search

TEXTS = 1 << 13  # of a group, from which on it is complete; with one more batch, their places take two bytes
BYTES = 1 << 23  # of its words, likewise


@dataclass(frozen=True)
class Words:
    """The words of a batch of texts one after the other; text i has `lengths[i]` of them."""

    each: pa.Array
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> "Words":
        """Of texts as `search.words` writes them, all cut in one pass."""
        whole = b" " + b" ".join(texts) + b" "
        spaces = np.frombuffer(whole, np.uint8) == ord(" ")
        edges = np.flatnonzero(spaces[1:] != spaces[:-1]) + 1  # by turns where a word begins and where it has ended
        starts, ends = edges[::2], edges[1::2]
        offsets = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(whole.translate(None, b" "))]
        behind = np.searchsorted(ends, np.cumsum([len(text) + 1 for text in texts]), side="right")
        return cls(pa.Array.from_buffers(pa.binary(), len(ends), buffers), np.diff(behind, prepend=0))


@dataclass(frozen=True)
class Group:
    """The words of texts 0 to `size`, each once: word i is in the texts `places[ends[i - 1]:ends[i]]`, in their order."""

    size: int
    words: list[bytes]
    ends: NDArray[np.int64]
    places: NDArray[np.uint16]


class Gatherer:
    """Gathers the words of texts, batch by batch, until a group of them is complete."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._parts: list[Words] = []
        self._texts = self._bytes = 0

    def add(self, texts: Sequence[bytes]) -> Group | None:
        """The group that these texts (as `search.words` writes them) complete, they included."""
        self._parts.append(Words.of(texts))
        self._texts += len(texts)
        self._bytes += sum(map(len, texts))
        return self.rest() if self._texts >= TEXTS or self._bytes >= BYTES else None

    def rest(self) -> Group | None:
        """The group of what was added since the last one; None where that is nothing."""
        if not self._texts:
            return None
        words = pa.concat_arrays([each.each for each in self._parts]).dictionary_encode()
        lengths = np.concatenate([each.lengths for each in self._parts])
        pairs = np.left_shift(
            np.frombuffer(words.indices.buffers()[1] or b"", np.uint32, len(words)), 16, dtype=np.uint64
        )
        pairs |= np.repeat(np.arange(len(lengths), dtype=np.uint16), lengths)
        pairs.sort()  # now the texts of a word lie side by side, and so do the times that one text holds it
        pairs = pairs[_changes(pairs)]
        ends = np.append(np.flatnonzero(_changes(pairs >> np.uint64(16))), len(pairs))[1:]
        book = [search.cut(word) for word in words.dictionary.to_pylist()]
        group = Group(len(lengths), book, ends, pairs.astype(np.uint16))
        self._clear()
        return group


def _changes(values: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which values are not the one before them."""
    found = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found
