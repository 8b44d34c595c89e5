"""Which examples hold a word: an index of our own.

A million pairs hold some sixty million different words. Postgres' index for them takes as long to fill as all the rest
of an import together, since it places every word of every row on its own. Here all examples of a block of ids that hold
a word are one row: examples never change, so nothing in such a row ever does.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from trainer.contracts import Example as Record

from . import copying, search
from .derived import searched
from .spoken import Gatherer, Group

Ids = NDArray[np.int64]
BLOCK = 1 << 16  # ids: an offset takes two bytes
HELD = 1 << 25  # bytes of offsets that wait for the rest of their block
BATCH = 2_000  # examples read at a time
LAST = "\U0010ffff"  # stands behind every word that begins with what is before it
COLUMNS = ("dataset_id", "origin", "word", "block", "offsets")


class Indexer:
    """Writes the words of new examples of one dataset, block by block of their ids."""

    def __init__(self, dataset_id: int, origin: int = 0) -> None:
        self.dataset_id, self.origin = dataset_id, origin
        self._clear()

    def _clear(self) -> None:
        self._book: defaultdict[bytes, bytearray] = defaultdict(bytearray)  # the offsets of a word, two bytes each
        self._block, self._held = -1, 0

    def add(self, ids: Ids, group: Group) -> bool:
        """Takes the words of examples that have the ids, 0 for one whose words are not wanted. Returns whether everything
        before them is written now."""
        written = False
        for block in np.unique(ids[ids > 0] // BLOCK).tolist():
            if self._book and (block != self._block or self._held >= HELD):
                self.write()
                written = True
            self._take(block, np.where(ids // BLOCK == block, ids, 0), group)
        return written

    def _take(self, block: int, ids: Ids, group: Group) -> None:
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

    def write(self) -> None:
        if self._book:
            with connection.cursor() as cursor:
                copying.copy(cursor, "datasets_wordhits", COLUMNS, self._rows())
        self._clear()

    def _rows(self) -> Iterator[bytes]:
        """In the order of their index, which then takes them side by side."""
        start = copying.starts(len(COLUMNS), *np.array([[self.dataset_id], [self.origin]]))[0]
        block = copying.cell(self._block)
        for word in sorted(self._book):
            yield start + copying.sized(word) + block + copying.sized(self._book[word])


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
    gatherer, waiting = Gatherer(), []
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        waiting.append(part)
        texts = [search.searched(searched(Record.model_validate_json(text))) for text in _canonical(part)]
        if group := gatherer.add(texts):
            indexer.add(np.concatenate(waiting), group)
            waiting = []
    if group := gatherer.rest():
        indexer.add(np.concatenate(waiting), group)
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
