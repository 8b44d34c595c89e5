"""An index of our own that finds the examples with a word.

A million pairs hold some sixty million different words. Postgres' index for them takes as long to fill as all the rest
of an import together, because it places every word of every row separately. Here all examples of a block of ids that hold
a word are one row: examples never change, so nothing in such a row ever does.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from django.db import connection
from numpy.typing import NDArray

from trainer.contracts import Example as Record

from ..encoding import arrow, copy_format
from . import tokenizer
from .builder import Gatherer, WordGroup
from .tokenizer import indexed_text

Ids = NDArray[np.int64]
BLOCK = 1 << 16  # ids: an offset takes two bytes
HELD = 1 << 25  # the most bytes of offsets that wait for the rest of their block
BATCH = 2_000  # examples read at a time
KEY = 4  # letters: keys with the same beginning lie all over the table, and three letters may find too many
LAST = "\U0010ffff"  # sorts after every word that begins with the text before it
COLUMNS = ("dataset_id", "origin", "word", "block", "offsets")


class Indexer:
    """Writes the words of new examples of one dataset, block by block of their ids."""

    def __init__(self, dataset_id: int, origin: int = 0) -> None:
        self.dataset_id, self.origin = dataset_id, origin
        self.written = (
            0  # of the examples that were added, the words of this many, from the first on, are in the database
        )
        self._gatherer = Gatherer()
        self._waiting: list[Ids] = []  # the ids of the examples whose words are still gathered
        self._gathered = 0
        self._clear()

    def _clear(self) -> None:
        self._book: defaultdict[bytes, bytearray] = defaultdict(bytearray)  # the offsets of a word, two bytes each
        self._block, self._held = -1, 0

    def add(self, ids: Ids, texts: pa.StringArray) -> None:
        """Adds the words of the examples with these ids; the words of an example with id 0 are not wanted. The texts are those of
        `tokenizer.searched`."""
        self._waiting.append(ids)
        if group := self._gatherer.add(texts):
            self._take_group(group)

    def finish(self) -> None:
        """Writes everything that was added."""
        if group := self._gatherer.rest():
            self._take_group(group)
        self._write()

    def _take_group(self, group: WordGroup) -> None:
        ids, self._waiting = np.concatenate(self._waiting), []
        for block in np.unique(ids[ids > 0] // BLOCK).tolist():
            if self._book and (block != self._block or self._held >= HELD):
                self._write()
                self.written = self._gathered
            self._take(block, np.where(ids // BLOCK == block, ids, 0), group)
        self._gathered += len(ids)

    def _take(self, block: int, ids: Ids, group: WordGroup) -> None:
        offsets, ends = (ids % BLOCK).astype("<u2")[group.places], group.ends
        if not ids.all():
            here = (ids > 0)[group.places]
            offsets, ends = offsets[here], np.append(0, np.cumsum(here))[ends]
        data, start = offsets.tobytes(), 0
        for word, end in zip(group.words, (2 * ends).tolist(), strict=True):
            if end > start:
                self._book[word] += data[start:end]
            start = end
        self._block, self._held = block, self._held + len(data)

    def _write(self) -> None:
        if self._book:
            with connection.cursor() as cursor:
                copy_format.copy(cursor, "datasets_wordhits", COLUMNS, self._rows())
        self._clear()

    def _rows(self) -> Iterator[bytes]:
        """The rows in the order of their index, which then stores them next to each other."""
        start = copy_format.starts(len(COLUMNS), *np.array([[self.dataset_id], [self.origin]]))[0]
        block = copy_format.cell(self._block)
        for word in sorted(self._book):
            yield start + copy_format.sized(word) + block + copy_format.sized(self._book[word])


def add_new(dataset_id: int, store: Callable[[], None]) -> None:
    """Indexes the examples of the dataset that `store` makes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM datasets_example")
        last = cursor.fetchone()[0]
    store()
    index(dataset_id, "datasets_example WHERE dataset_id = %s AND id > %s", [dataset_id, last])


def index(dataset_id: int, rows: str, values: list[int], origin: int = 0) -> None:
    """Indexes the examples that are `rows` of a query. It needs the memory of one block of ids, for any number of rows."""
    indexer = Indexer(dataset_id, origin)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {rows} ORDER BY id", values)  # noqa: S608  from code, never from people
        ids = np.fromiter((row[0] for row in cursor), np.int64)
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        texts = (tokenizer.searched(indexed_text(Record.model_validate_json(text))) for text in _canonical(part))
        indexer.add(part, arrow.texts(texts))
    indexer.finish()


def _canonical(ids: Ids) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT canonical FROM datasets_example WHERE id = ANY(%s) ORDER BY id", [ids.tolist()])
        return [row[0] for row in cursor.fetchall()]


def holding(dataset_id: int, word: str, prefix: bool) -> Ids:
    """The ids of the dataset's examples that hold the word, or a word that begins with it; in no order, and some repeated. A key that is a
    word is found by its beginning if that has at least KEY letters."""
    last = word + LAST if prefix else word
    last_key = last if len(word) >= KEY else word
    with connection.cursor() as cursor:
        sql = "SELECT block, offsets FROM datasets_wordhits WHERE dataset_id = %s AND word BETWEEN %s AND %s"
        cursor.execute(sql, [dataset_id, word, last])
        parts = [np.frombuffer(offsets, "<u2") + np.int64(BLOCK * block) for block, offsets in cursor]
        sql = "SELECT id FROM datasets_example WHERE dataset_id = %s AND key BETWEEN %s AND %s"
        cursor.execute(sql, [dataset_id, word, last_key])
        return np.concatenate((*parts, np.fromiter((row[0] for row in cursor), np.int64)))
