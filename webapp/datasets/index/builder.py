"""Gathers the words of many texts for the index of `postings`: each word once, with the texts that hold it.

To look up every word by itself took a fifth of an import's time. Here the words of tens of thousands of texts are cut, numbered and
sorted at once, away from the database.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..encoding import arrow
from . import tokenizer

TEXTS = 1 << 13  # a group with this many texts is complete
BYTES = 1 << 23  # a group with this many bytes of words is complete too
NARROW = 32  # bits for the numbers of a word and a text, if they fit: they are sorted in half the time that 64 take


@dataclass(frozen=True)
class Words:
    """The words of a batch of texts one after the other; text i has `lengths[i]` of them. A text without words has one word without
    letters."""

    each: pa.Array
    lengths: NDArray[np.int32]

    @classmethod
    def of(cls, texts: pa.StringArray) -> "Words":
        """Gathers the words of texts as `tokenizer.searched` gives them, all folded and cut in one pass."""
        _, offsets, letters = texts.buffers()
        folded = pa.py_buffer(letters.to_pybytes().translate(tokenizer.FOLDED) if letters else b"")
        spaced = pa.Array.from_buffers(pa.string(), len(texts), [None, offsets, folded])
        cut = pc.ascii_split_whitespace(pc.ascii_trim_whitespace(spaced))
        return cls(cut.values.view(pa.binary()), np.diff(arrow.numbers(cut.offsets)))


@dataclass(frozen=True)
class WordGroup:
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

    def add(self, texts: pa.StringArray) -> WordGroup | None:
        """The group that these texts (as `tokenizer.searched` gives them) complete, with these texts; None if it is not complete."""
        if len(texts):
            self._parts.append(Words.of(texts))
            self._texts += len(texts)
            self._bytes += texts.nbytes
        return self.rest() if self._texts >= TEXTS or self._bytes >= BYTES else None

    def rest(self) -> WordGroup | None:
        """The group of the texts that were added since the last one; None if there are none."""
        if not self._texts:
            return None
        size, lengths = self._texts, np.concatenate([each.lengths for each in self._parts])
        words = pa.concat_arrays([each.each for each in self._parts]).dictionary_encode()
        self._clear()
        codes, book = arrow.numbers(words.indices), words.dictionary.to_pylist()
        bits = size.bit_length()
        kind = np.uint32 if len(book) << bits < 1 << NARROW else np.uint64
        pairs = np.left_shift(codes, bits, dtype=kind, casting="unsafe")
        pairs |= np.repeat(np.arange(size, dtype=kind), lengths)
        if b"" in book:
            pairs = pairs[codes != book.index(b"")]
        pairs.sort()  # now the texts of a word are next to each other, and so are the repeats of a word within one text
        pairs = pairs[_changes(pairs)]
        ends = np.cumsum(np.bincount((pairs >> bits).astype(np.int64), minlength=len(book)))
        places = (pairs & kind((1 << bits) - 1)).astype(np.uint16)
        return WordGroup(size, [tokenizer.cut(word) for word in book], ends, places)


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each value differs from the one before it."""
    found = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found
