"""Our side of an import: rows read, checked and written for COPY in another thread, while the database takes earlier ones.

Waiting for the database leaves the processor to the thread, so both work at the same time; batches keep their order.
"""

import gc
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from trainer.contracts import Example

from . import loading, search
from .derived import COLUMNS, columns, searched
from .importers import Bundle, Importer, RowProblem, Tally, plain
from .importers import Mapping as Columns
from .importers.source import Progress
from .loading import Row
from .packed import Packer
from .splits import Splits
from .taken import Taken
from .words import Words

ROWS, BYTES = 2_000, 4_000_000  # of a batch at most: rows, and what is read of the file
PACKED = itemgetter(*(list(COLUMNS).index(name) for name in Packer.NAMES))
LOOK = 20  # rows after which it is asked again how much was read
PACE = 100_000  # new objects after which the collector looks at them
AHEAD = 2  # batches that are checked before they are asked for


@dataclass(frozen=True)
class Place:
    """How far a file is read after a batch of it, which is `count` rows: `read` rows of the file are taken then; its
    first byte is that number `bytes_before` of all files."""

    file: int
    name: str
    count: int
    read: int
    bytes_before: int
    bytes_done: int


@dataclass
class Batch:
    """Rows of one file in their order: (line, example or problem)."""

    place: Place
    rows: list[tuple[int, Example | RowProblem]]

    @property
    def keys(self) -> list[str]:
        return [row.key for _, row in self.rows if isinstance(row, Example)]


@dataclass
class Ready:
    """A batch for the loader: its good rows as COPY takes them, their columns for `packed` and their words; and the
    problems of the others."""

    place: Place
    rows: list[Row]
    columns: list[tuple[Any, ...]]
    words: Words
    problems: list[RowProblem]


class Reader:
    """Reads the files of a bundle as examples of one format, behind what is `taken`."""

    def __init__(
        self,
        bundle: Bundle,
        names: tuple[str, ...],
        importer: Importer,
        mapping: Columns,
        splits: Splits,
        taken: Taken,
    ) -> None:
        self.bundle, self.names, self.importer, self.mapping, self.splits = bundle, names, importer, mapping, splits
        self._taken = taken
        self._new = splits.dataset is None  # then no row has an earlier side that must be looked up

    def ready(self) -> Iterator[Ready]:
        """Every batch, checked and written. Raises OSError for a file that cannot be read."""
        with _thread() as thread:
            batches = self.batches()
            checked: deque[Future[Batch | None]] = deque()
            written: deque[Future[Ready]] = deque()
            for _ in range(AHEAD):
                checked.append(thread.submit(next, batches, None))
            while checked or written:
                batch = checked.popleft().result() if checked else None
                if batch:
                    before = {} if self._new else self.splits.before(batch.keys)
                    written.append(thread.submit(self.write, batch, before))
                    checked.append(thread.submit(next, batches, None))
                else:
                    checked.clear()
                if written and (not batch or len(written) > AHEAD):
                    yield written.popleft().result()

    def batches(self) -> Iterator[Batch]:
        """The rows in batches, which never reach over the end of a file."""
        first, done = self._taken.file, self._taken.bytes_before
        for number, name in enumerate(self.names[first:], first):
            tally = Tally(taken=self._taken.rows if number == first else 0)
            with self.bundle.opened(name) as (stream, progress):
                rows = self.importer.read(stream, name, self.mapping, self.bundle.beside(name), tally)
                while batch := list(_bounded(rows, progress)):
                    yield Batch(Place(number, name, len(batch), tally.rows, done, done + progress.bytes_done), batch)
                done += progress.bytes_done

    def write(self, batch: Batch, before: Mapping[str, str]) -> Ready:
        """The good rows on their sides of the split."""
        rows: list[Row] = []
        narrow: list[tuple[Any, ...]] = []
        spoken: list[bytes] = []
        problems: list[RowProblem] = []
        for line, row in batch.rows:
            given = row if isinstance(row, RowProblem) else self._settled(line, row, before)
            if isinstance(given, RowProblem):
                problems.append(given)
                continue
            try:
                values = columns(given, plain.canonical(given))
                rows.append(loading.row(line, values))
            except ValueError as error:
                problems.append(_unstorable(line, error))
                continue
            narrow.append(PACKED(values))
            spoken.append(search.words(searched(given)))
        return Ready(batch.place, rows, narrow, Words.of(spoken), problems)

    def _settled(self, line: int, example: Example, before: Mapping[str, str]) -> Example | RowProblem:
        split = self.splits.decide(line, example, before)
        if isinstance(split, RowProblem):
            return split
        # the record is frozen for those it is given to; nobody has this one yet, and a copy takes its time
        example.__dict__["split"] = split
        return example


def _unstorable(line: int, error: ValueError) -> RowProblem:
    """An infinite number or half a character: neither JSON nor Postgres takes it."""
    return RowProblem(line, "", f"holds a value that cannot be stored: {error}")


def _bounded(
    rows: Iterator[tuple[int, Example | RowProblem]], progress: Progress
) -> Iterator[tuple[int, Example | RowProblem]]:
    start = progress.bytes_done
    for number, row in enumerate(rows, 1):
        yield row
        if number >= ROWS or (number % LOOK == 0 and progress.bytes_done - start > BYTES):
            return


@contextmanager
def _thread() -> Iterator[ThreadPoolExecutor]:
    """One thread; what it has not begun when the import ends early is never begun.

    A batch is some 50,000 small objects that live for seconds and hold no cycles: at its usual pace, the collector would
    spend a tenth of the time on looking at them again and again.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="import")
    pace = gc.get_threshold()
    gc.set_threshold(PACE, *pace[1:])
    try:
        yield thread
    finally:
        gc.set_threshold(*pace)
        thread.shutdown(cancel_futures=True)
