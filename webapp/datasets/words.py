"""Which examples hold a word: an index of our own.

A million pairs hold some sixty million different words. Postgres' index for them takes as long to fill as all the rest
of an import together, since it places every word of every row on its own. Here the words of tens of thousands of
examples are sorted at once and written as one row for each word: examples never change, so nothing in such a row ever does.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from django.db import connection
from numpy.typing import NDArray

from trainer.contracts import Example as Record

from . import copying, search
from .derived import searched

Ids = NDArray[np.int64]
BLOCK = 1 << 16  # ids: an offset takes two bytes
AT_ONCE = BLOCK // 4  # examples, at least, whose words are sorted together
BATCH = 2_000  # examples read at a time
LAST = "\U0010ffff"  # stands behind every word that begins with what is before it
COLUMNS = ("dataset_id", "origin", "word", "block", "offsets")


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


class Indexer:
    """Gathers the words of new examples of one dataset, and writes those of many at once, which lie in one block."""

    def __init__(self, dataset_id: int, origin: int = 0) -> None:
        self.dataset_id, self.origin = dataset_id, origin
        self._clear()

    def _clear(self) -> None:
        self._parts: list[tuple[pa.Array, NDArray[np.uint16]]] = []  # words, and an offset for each of them
        self._block, self._examples = -1, 0

    def add(self, ids: Ids, new: NDArray[np.bool_], words: Words) -> bool:
        """Takes the examples that are `new`, of all that `words` has the words of. Returns whether everything before them
        is written now."""
        written = False
        for block in np.unique(ids[new] // BLOCK).tolist():
            if self._parts and (block != self._block or self._examples >= AT_ONCE):
                self.write()
                written = True
            self._take(block, ids, new & (ids // BLOCK == block), words)
        return written

    def _take(self, block: int, ids: Ids, here: NDArray[np.bool_], words: Words) -> None:
        each = words.each if here.all() else words.each.filter(pa.array(np.repeat(here, words.lengths)))
        self._parts.append((each, np.repeat((ids[here] % BLOCK).astype(np.uint16), words.lengths[here])))
        self._block, self._examples = block, self._examples + int(here.sum())

    def write(self) -> None:
        if self._parts:
            parts, offsets = zip(*self._parts, strict=True)
            words = pa.concat_arrays(
                parts
            ).dictionary_encode()  # a look-up for each word took a fifth of an import's time
            codes = np.frombuffer(words.indices.buffers()[1] or b"", np.uint32, len(words))
            pairs = np.left_shift(codes, 16, dtype=np.uint64)
            pairs |= np.concatenate(offsets)
            pairs.sort()  # now the offsets of a word lie side by side, those of one example too
            rows = self._rows(words.dictionary.to_pylist(), pairs[_changes(pairs)])
            with connection.cursor() as cursor:
                copying.copy(cursor, "datasets_wordhits", COLUMNS, rows)
        self._clear()

    def _rows(self, book: list[bytes], pairs: NDArray[np.uint64]) -> Iterator[bytes]:
        data, firsts = pairs.astype("<u2").tobytes(), np.flatnonzero(_changes(pairs >> np.uint64(16)))
        start = copying.starts(len(COLUMNS), *np.array([[self.dataset_id], [self.origin]]))[0]
        block = copying.cell(self._block)
        for word, first, end in zip(book, firsts.tolist(), [*firsts.tolist(), len(pairs)][1:], strict=True):
            yield start + copying.sized(search.cut(word)) + block + copying.sized(data[2 * first : 2 * end])


def _changes(values: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which values are not the one before them."""
    found = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def add_new(dataset_id: int, store: Callable[[], None]) -> None:
    """Indexes the examples of the dataset that `store` makes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM datasets_example")
        last = cursor.fetchone()[0]
    store()
    index(dataset_id, "datasets_example WHERE dataset_id = %s AND id > %s", [dataset_id, last])


def index(dataset_id: int, rows: str, values: list[int], origin: int = 0) -> None:
    """Indexes the examples that are `rows` of a query; memory stays flat but for one block of ids."""
    indexer = Indexer(dataset_id, origin)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {rows} ORDER BY id", values)  # noqa: S608  from code, never from people
        ids = np.fromiter((row[0] for row in cursor), np.int64)
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        texts = [search.words(searched(Record.model_validate_json(text))) for text in _canonical(part)]
        indexer.add(part, np.ones(len(part), bool), Words.of(texts))
    indexer.write()


def _canonical(ids: Ids) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT canonical FROM datasets_example WHERE id = ANY(%s) ORDER BY id", [ids.tolist()])
        return [row[0] for row in cursor.fetchall()]


def holding(dataset_id: int, word: str, prefix: bool) -> Ids:
    """The ids of the dataset's examples that hold the word, or one that begins with it; in no order, some repeated."""
    sql = "SELECT block, offsets FROM datasets_wordhits WHERE dataset_id = %s AND word "
    values: list[Any] = [dataset_id, word]
    with connection.cursor() as cursor:
        if prefix:
            cursor.execute(sql + ">= %s AND word < %s", [*values, word + LAST])
        else:
            cursor.execute(sql + "= %s", values)
        parts = [np.frombuffer(offsets, "<u2") + np.int64(BLOCK * block) for block, offsets in cursor]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
