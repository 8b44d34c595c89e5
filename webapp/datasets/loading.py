"""The database's side of an import: batch by batch, rows go straight into a version that nobody sees before it is whole.

Filling tables and indexes takes the server about as long as reading and checking the rows takes us, so both happen at
the same time. Every batch is committed, so that an import whose worker died goes on behind the last one. Two tables
help: a temporary one holds the batch; the other, kept while the version is filled, holds the narrow columns of all rows
so far, by which repeated keys are found and the version is described in the end.
"""

from collections.abc import Iterator
from itertools import compress
from typing import Any, Protocol

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from . import copying, packed, staging, versions, words
from .derived import COLUMNS
from .models import Dataset, DatasetVersion
from .taken import Taken
from .words import Words

PLACE = {"place": "bigint", "file": "int", "line": "bigint"}
NARROW = (
    *("key", "digest", "split", "domain", "source", "criteria_count", "verifiable_count"),
    *("response_count", "preference_count", "verifiers"),
)
TYPES = {**PLACE, **COLUMNS}
NAMES = ", ".join(COLUMNS)
PROVISIONAL = 2**31 - 1  # numbers of versions that are still filled count down from here
SETTINGS = {"work_mem": "96MB"}

# examples of a version from a position on, as `words.index` takes them
MEMBERS = """
    (SELECT example.id FROM datasets_versionmember AS member JOIN datasets_example AS example
     ON example.id = member.example_id WHERE member.version_id = %s AND member.position >= %s) AS stored
"""

write = copying.writer(TYPES.values())


class Ready(Protocol):
    """A batch as `reading` gives it."""

    data: bytes
    lines: list[int]
    packed: list[tuple[Any, ...]]
    words: Words
    place: int


def _columns(names: Iterator[str]) -> str:
    return ", ".join(f"{name} {TYPES[name]}" for name in names)


def rows_table(version_id: int) -> str:
    return f"import_rows_{int(version_id)}"


def begin(dataset: Dataset, lineage: versions.Lineage, import_id: int) -> DatasetVersion:
    """An empty version that `Loader` fills; call inside a transaction. No other import of the id is being filled."""
    version = DatasetVersion.every.create(dataset=dataset, number=PROVISIONAL - import_id, digest="", lineage=lineage)
    rows = rows_table(version.pk)
    with connection.cursor() as cursor:
        # not logged: should the server itself crash, it is empty afterwards, and the import starts over
        cursor.execute(f"CREATE UNLOGGED TABLE {rows} ({_columns(iter((*PLACE, *NARROW)))})")
        cursor.execute(f"CREATE UNIQUE INDEX ON {rows} (key)")
    return version


def intact(taken: Taken) -> bool:
    """Whether the rows that were taken are still there to compare others with."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {rows_table(taken.version)})")  # noqa: S608  a number
        return not taken.place or bool(cursor.fetchone()[0])


def discard(version_id: int, *, shared: bool = False) -> None:
    """Takes away a version that is still filled, the examples that no other version lists, and the dataset if it was
    only made for it. Call inside a transaction, with the dataset's name locked.

    `shared`: a version made while nobody filled this one may list its examples, and relies on its words.
    """
    version = DatasetVersion.every.get(pk=version_id)
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM datasets_wordhits WHERE dataset_id = %s AND origin = %s", [version.dataset_id, version_id]
        )
        if shared:
            words.index(version.dataset_id, MEMBERS, [version_id, 0])
        cursor.execute(
            """
            WITH listed AS (DELETE FROM datasets_versionmember WHERE version_id = %s RETURNING example_id)
            DELETE FROM datasets_example AS example USING listed
            WHERE example.id = listed.example_id AND NOT EXISTS (
                SELECT 1 FROM datasets_versionmember AS other
                WHERE other.example_id = example.id AND other.version_id <> %s
            )
            """,
            [version_id, version_id],
        )
        cursor.execute(f"DROP TABLE IF EXISTS {rows_table(version_id)}")
    version.delete()
    Dataset.every.filter(ready=False, versions=None).delete()


class Loader:
    """Fills a version that `begin` made, behind what is `taken` of it. `take` and `finish` want a transaction each.

    In a row, `place` is a number that counts all rows of the import up; `file` and `line` say where people find it.
    """

    def __init__(self, version: DatasetVersion, taken: Taken) -> None:
        self.version = version
        self.storing = True
        self.stored = taken.stored
        self.packer = None if taken.stored else packed.Packer()  # what an earlier worker stored is read again for it
        self._rows = rows_table(version.pk)
        self.indexed = taken.indexed  # members whose words are written
        self._indexer = words.Indexer(version.dataset_id, version.pk)
        if taken.stored > taken.indexed:
            words.index(version.dataset_id, MEMBERS, [version.pk, taken.indexed], version.pk)
            self.indexed = taken.stored
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS import_batch")
            cursor.execute(f"CREATE TEMPORARY TABLE import_batch ({_columns(iter(TYPES))})")

    def take(self, ready: Ready) -> list[tuple[int, int, str, int, int]]:
        """Takes a batch; returns the rows whose key came before: (file, line, key, file and line of the first). Without
        `storing` rows are only counted and compared, for the report of an import that is refused."""
        with connection.cursor() as cursor:
            _settle(cursor)
            cursor.execute("TRUNCATE import_batch")
            with cursor.copy("COPY import_batch FROM STDIN (FORMAT BINARY)") as to:
                to.write(copying.HEADER + ready.data + copying.TRAILER)
            narrow = ", ".join((*PLACE, *NARROW))
            cursor.execute(
                f"INSERT INTO {self._rows} ({narrow}) SELECT {narrow} FROM import_batch ORDER BY place "  # noqa: S608
                "ON CONFLICT (key) DO NOTHING"
            )
            repeated = self._repeated(cursor) if cursor.rowcount < len(ready.lines) else []
            if self.storing:
                kept = np.ones(len(ready.lines), bool)
                kept[[place - ready.place + len(kept) for *_, place in repeated]] = False
                self._store(cursor, ready, kept)
                if self.packer:
                    self.packer.add(list(compress(ready.packed, kept)))
        return [row[:-1] for row in repeated]

    def _repeated(self, cursor: Any) -> list[tuple[int, int, str, int, int, int]]:
        cursor.execute(f"""
            DELETE FROM import_batch USING {self._rows} AS known
            WHERE import_batch.key = known.key AND import_batch.place <> known.place
            RETURNING import_batch.file, import_batch.line, known.key, known.file, known.line, import_batch.place
        """)  # noqa: S608  a number
        return sorted(cursor.fetchall())

    def _store(self, cursor: Any, ready: Ready, kept: NDArray[np.bool_]) -> None:
        cursor.execute("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM datasets_example_id_seq")
        last = cursor.fetchone()[0]
        cursor.execute(
            f"INSERT INTO datasets_example (dataset_id, {NAMES}, created_at) "  # noqa: S608  constants
            f"SELECT %s, {NAMES}, now() FROM import_batch ORDER BY place ON CONFLICT (dataset_id, digest) DO NOTHING",
            [self.version.dataset_id],
        )
        cursor.execute(
            """
            INSERT INTO datasets_versionmember (version_id, example_id, position)
            SELECT %s, example.id, %s + row_number() OVER (ORDER BY batch.place) - 1
            FROM import_batch AS batch
            JOIN datasets_example AS example ON example.dataset_id = %s AND example.digest = batch.digest
            RETURNING position, example_id
            """,
            [self.version.pk, self.stored, self.version.dataset_id],
        )
        ids = np.zeros(len(kept), np.int64)
        ids[kept] = [example_id for _, example_id in sorted(cursor.fetchall())]
        if self._indexer.add(ids, ids > last, ready.words):
            self.indexed = self.stored
        self.stored += int(kept.sum())

    def count(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {self._rows}")  # noqa: S608  a number
            return int(cursor.fetchone()[0])

    def finish(self) -> tuple[DatasetVersion, bool]:
        """The version with its number, counts and digest, and whether it is new: where a version with the same content
        is there already, that one comes back, and the one that was filled is taken away."""
        counts, facets, digest = staging.facts(self._rows)
        version = self.version
        same = DatasetVersion.objects.filter(dataset=version.dataset_id, digest=digest).order_by("-number").first()
        if same:
            discard(version.pk)
            return same, False
        with connection.cursor() as cursor:
            _settle(cursor)
            cursor.execute(f"DROP TABLE {self._rows}")
        self._indexer.write()
        version.counts, version.facets, version.digest = counts, facets, digest
        version.number = versions.next_number(version.dataset)
        version.save()
        if self.packer:
            self.packer.save(version.pk)
        else:
            packed.pack(version.pk)
        return version, True

    def close(self) -> None:
        # in a broken transaction the table goes with the rollback, or with the connection
        if connection.is_usable() and not connection.needs_rollback:
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE IF EXISTS import_batch")


def _settle(cursor: Any) -> None:
    """The settings of an import, for this transaction."""
    for name, value in SETTINGS.items():
        cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
