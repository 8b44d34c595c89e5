"""Which examples hold a word: an index of our own.

A million pairs hold some sixty million different words. Postgres' index for them takes as long to fill as all the rest
of an import together, since it places every word of every row on its own. Here the words of tens of thousands of
examples are sorted at once and written as one row for each word: examples never change, so nothing in such a row ever does.
"""

from collections import defaultdict
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
AT_ONCE = 20_000  # examples whose words are sorted together
BATCH = 2_000  # examples read at a time
LAST = "\U0010ffff"  # stands behind every word that begins with what is before it
COLUMNS = {"dataset_id": "bigint", "origin": "bigint", "word": "bytea", "block": "int", "offsets": "bytea"}

write = copying.writer(list(COLUMNS.values()))  # a text in UTF-8 is written as its bytes are


@dataclass(frozen=True)
class Words:
    """The words of a batch of texts: text i holds `lengths[i]` of the `codes`, which are places in `book`."""

    book: list[bytes]
    codes: NDArray[np.uint32]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> "Words":
        """Of texts as `search.words` writes them, all words in one pass: a look-up for each of them took a fifth of an
        import's time."""
        whole = b" " + b" ".join(texts) + b" "
        spaces = np.frombuffer(whole, np.uint8) == ord(" ")
        edges = np.flatnonzero(spaces[1:] != spaces[:-1]) + 1  # by turns where a word begins and where it has ended
        starts, ends = edges[::2], edges[1::2]
        offsets = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(whole.translate(None, b" "))]
        coded = pa.Array.from_buffers(pa.binary(), len(ends), buffers).dictionary_encode()
        behind = np.searchsorted(ends, np.cumsum([len(text) + 1 for text in texts]), side="right")
        return cls(coded.dictionary.to_pylist(), coded.indices.to_numpy().view(np.uint32), np.diff(behind, prepend=0))


def _numbered() -> "defaultdict[bytes, int]":
    """Gives every new key the next number."""
    book: defaultdict[bytes, int] = defaultdict()
    book.default_factory = book.__len__
    return book


class Indexer:
    """Gathers the words of new examples of one dataset, and writes those of many at once, which lie in one block."""

    def __init__(self, dataset_id: int, origin: int = 0) -> None:
        self.dataset_id, self.origin = dataset_id, origin
        self._clear()

    def _clear(self) -> None:
        self._book = _numbered()
        self._parts: list[tuple[NDArray[np.uint32], NDArray[np.uint16]]] = []  # a code and an offset for each word
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
        ours = np.fromiter(map(self._book.__getitem__, words.book), np.uint32, len(words.book))
        codes = ours[words.codes[np.repeat(here, words.lengths)]]
        self._parts.append((codes, np.repeat((ids[here] % BLOCK).astype(np.uint16), words.lengths[here])))
        self._block, self._examples = block, self._examples + int(here.sum())

    def write(self) -> None:
        if self._parts:
            codes, offsets = (np.concatenate(each) for each in zip(*self._parts, strict=True))
            with connection.cursor() as cursor:
                copying.copy(cursor, "datasets_wordhits", COLUMNS, self._rows(codes, offsets))
        self._clear()

    def _rows(self, codes: NDArray[np.uint32], offsets: NDArray[np.uint16]) -> Iterator[bytes]:
        pairs = codes.astype(np.uint64) << 16 | offsets
        pairs.sort()  # now the offsets of a word lie side by side, those of one example too
        pairs = pairs[np.diff(pairs, prepend=pairs[:1] + np.uint64(1)) != 0]
        data, codes = pairs.astype("<u2").tobytes(), (pairs >> 16).astype(np.uint32)
        starts = np.flatnonzero(np.diff(codes, prepend=codes[:1] + 1))
        ends = [*starts[1:].tolist(), len(codes)]
        book = list(self._book)
        for code, start, end in zip(codes[starts].tolist(), starts.tolist(), ends, strict=True):
            yield write((self.dataset_id, self.origin, search.cut(book[code]), self._block, data[2 * start : 2 * end]))


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
