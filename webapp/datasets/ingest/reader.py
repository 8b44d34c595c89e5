"""Our side of an import: reads and checks rows, and writes them for COPY, without the database.

It needs neither Django nor a connection, so that it can be a separate process (see `processes`) while the database takes the previous
batches.
"""

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from trainer.contracts import Example
from webapp.files.bundle import Bundle
from webapp.files.records import Row as FileRow
from webapp.files.records import RowProblem
from webapp.files.source import ReadProgress

from ..columns import arrays, prefilter
from ..columns.arrays import ColumnArray
from ..columns.derive import COLUMNS, columns
from ..columns.prompt_hashes import Hashes, hashes
from ..encoding import arrow, copy_format
from ..formats import importers, plain_pairs
from ..formats.base_importer import Importer, Tally
from ..formats.convert import Mapping as Fields
from ..formats.convert import MappingOf
from ..formats.importers import REGISTRY
from ..index import tokenizer
from ..index.tokenizer import indexed_text
from ..versions.split_rule import Rule
from .checkpoint import ImportCheckpoint

ROWS, BYTES = 2_000, 4_000_000  # of a batch at most: rows, and unpacked bytes of the file
LOOK = 20  # rows after which the number of read bytes is checked again
NARROW = (  # the columns by which a version is described in the end
    *("key", "digest", "split", "domain", "source", "criteria_count", "verifiable_count"),
    *("response_count", "preference_count", "verifiers", "prompt_hash", "group_hash"),
)

Row = tuple[int, Example | RowProblem | None]  # line, its content
Sides = Mapping[str, str]  # key -> the side that it has in an earlier version
Before = Callable[
    [list[str]], Callable[[], Sides]
]  # starts a query for the sides of keys, and returns a function that waits for the answer
_cells = copy_format.cells(COLUMNS.values())
_narrow = itemgetter(*(list(COLUMNS).index(name) for name in NARROW))


@dataclass(frozen=True)
class ReadPlace:
    """The position in a file after a batch of `count` rows: `read` rows of the file are taken then. The file's first byte is number
    `bytes_before` of all files."""

    file: int
    name: str
    count: int
    read: int
    bytes_before: int
    bytes_done: int


@dataclass
class RowBatch:
    """Rows of one file in their order: (line, example or problem). `unmet`: see LoadBatch."""

    place: ReadPlace
    rows: list[tuple[int, Example | RowProblem]]
    unmet: frozenset[str] = frozenset()

    @property
    def keys(self) -> list[str]:
        return [row.key for _, row in self.rows if isinstance(row, Example)]


@dataclass
class LoadBatch:
    """A batch for the loader. For its good rows it has lines, grounds of their sides, keys and digests; the cells of COLUMNS and of NARROW
    in the form of COPY; their small columns; and the searched parts of their texts. For the others it has the problems. `unmet`: the
    columns of a given mapping that no row of this batch has, nor of the batches that the same reader gave before. `unread`: other columns
    of its good rows, with the number of rows."""

    place: ReadPlace
    lines: list[int] = field(default_factory=list)
    grounds: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    wide: list[bytes] = field(default_factory=list)
    narrow: list[bytes] = field(default_factory=list)
    columns: dict[str, ColumnArray] = field(default_factory=dict)
    texts: pa.StringArray = field(default_factory=lambda: arrow.texts(()))
    problems: list[RowProblem] = field(default_factory=list)
    unmet: frozenset[str] = frozenset()
    unread: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Reader:
    """Reads `names` of the bundle at `path` as examples of one format, after what is `taken`. Without a `mapping`, that of each row is
    guessed. Several readers can work at the same time, one for each of `turns`: with n readers, each gives every n-th batch, and together
    they give what one alone would."""

    path: Path
    file_name: str
    names: tuple[str, ...]
    format: str
    mapping: Fields
    rule: Rule
    taken: ImportCheckpoint
    turn: int = 0
    turns: int = 1

    def ready(self, before: Before | None) -> Generator[LoadBatch, None, None]:
        """Every batch, checked and written. Without `before`, no key has an earlier side; otherwise it is asked about a batch while the
        previous batch is still being written. Raises OSError for a file that cannot be read."""
        waiting: deque[tuple[RowBatch, Callable[[], Sides]]] = deque()
        for batch in self._batches():
            waiting.append((batch, before(batch.keys) if before else dict))
            if len(waiting) > (1 if before else 0):
                yield self._write(*waiting.popleft())
        if waiting:
            yield self._write(*waiting.popleft())

    def _batches(self) -> Iterator[RowBatch]:
        """The rows in batches. A batch ends with its file."""
        bundle, importer = Bundle(self.path, self.file_name), REGISTRY[self.format]
        first, done, batches = self.taken.file, self.taken.bytes_before, 0
        unmet = set(self.mapping.values())
        for number, name in enumerate(self.names[first:], first):
            tally = Tally(taken=self.taken.rows if number == first else 0)
            mapping_of = self._mapping_of(importer, bundle, name, unmet)
            with bundle.opened(name) as (stream, progress):
                rows = importer.each(stream, name, mapping_of, bundle.beside(name), tally)
                while True:
                    start, tally.passing = max(tally.rows, tally.taken), batches % self.turns != self.turn
                    batch = [(line, row) for line, row in _bounded(rows, progress, tally, start) if row is not None]
                    if tally.rows <= start:
                        break
                    batches += 1
                    if not tally.passing:
                        at = done + progress.bytes_done
                        place = ReadPlace(number, name, len(batch), tally.rows, done, at)
                        yield RowBatch(place, batch, frozenset(unmet))
                done += progress.bytes_done

    def _mapping_of(self, importer: Importer, bundle: Bundle, name: str, unmet: set[str]) -> MappingOf:
        """The mapping of each row of the file. Columns that a row has are taken out of `unmet`."""
        mapping_of = importers.mapping_of(importer, bundle, name, self.mapping)

        def told(row: FileRow) -> Fields:
            if unmet:
                unmet.difference_update(row)
            return mapping_of(row)

        return told

    def _write(self, batch: RowBatch, answer: Callable[[], Sides]) -> LoadBatch:
        """Writes the good rows, on their sides of the split."""
        ready, before = LoadBatch(batch.place, unmet=batch.unmet), answer()
        good = [each for line, row in batch.rows if (each := self._settled(line, row, before, ready.problems))]
        said = [indexed_text(each.example) for each in good]
        texts = arrow.texts(said)
        small: list[tuple[Any, ...]] = []
        for each, found in zip(good, prefilter.signs_of(texts), strict=True):
            values = columns(each.example, each.canonical, found, each.hashes)
            cells = _cells(values)
            ready.lines.append(each.line)
            ready.grounds.append(each.ground)
            ready.keys.append(values[0])
            ready.digests.append(values[1])
            ready.wide.append(b"".join(cells))
            ready.narrow.append(b"".join(_narrow(cells)))
            small.append(arrays.packed(values))
            if self.mapping:
                ready.unread.update(each.example.meta.keys() - self._read(each.example))
        batch.rows.clear()  # they take as much memory as everything else, and the batch is still in use
        ready.columns, kept = arrays.column_arrays(small), list(map(tokenizer.searched, said))
        ready.texts = texts if kept == said else arrow.texts(kept)
        return ready

    def _read(self, made: Example) -> set[str]:
        """The columns of the mapping from which fields of the example may come. Beside a better and a worse response, nothing reads a
        further one."""
        has_pair = "chosen" in self.mapping and made.preferences
        return {column for name, column in self.mapping.items() if name != "response" or not has_pair}

    def _settled(
        self, line: int, row: Example | RowProblem, before: Sides, problems: list[RowProblem]
    ) -> "DecidedRow | None":
        """The example on its side; None for a row that cannot be taken, whose problem is then added to `problems`."""
        if isinstance(row, RowProblem):
            problems.append(row)
            return None
        # the record is frozen for its users, but nobody has this one yet, and a copy would take time
        row.__dict__["group"] = self.rule.group_of(row)
        found = hashes(row)
        decision = self.rule.decide(line, row, found, before)
        if isinstance(decision, RowProblem):
            problems.append(decision)
            return None
        row.__dict__["split"] = decision.split
        try:
            return DecidedRow(line, row, plain_pairs.canonical(row), found, decision.ground)
        except ValueError as error:
            problems.append(_unstorable(line, error))
            return None


class DecidedRow(NamedTuple):
    """A good row whose side is decided."""

    line: int
    example: Example
    canonical: bytes
    hashes: Hashes
    ground: int


def _unstorable(line: int, error: ValueError) -> RowProblem:
    """The problem of a row with an infinite number or half a character, which neither JSON nor Postgres accepts."""
    return RowProblem(line, "", f"holds a value that cannot be stored: {error}")


def _bounded(rows: Iterator[Row], progress: ReadProgress, tally: Tally, start: int) -> Iterator[Row]:
    """The rows of one batch, after the first `start` rows. It ends at the same row whether rows are converted or skipped."""
    bytes_before = (
        progress.bytes_out
    )  # unpacked bytes, because a batch that was packed a hundredfold would not fit into memory
    for row in rows:
        yield row
        count = tally.rows - start
        if count >= ROWS or (count % LOOK == 0 and progress.bytes_out - bytes_before > BYTES):
            return
