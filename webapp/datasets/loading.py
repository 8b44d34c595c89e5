"""The database's side of an import: batch by batch, rows go straight into a version that nobody sees before it is whole.

Filling tables and indexes takes the server about as long as reading and checking the rows takes us, so both happen at
the same time. Every batch is committed, so that an import whose worker died goes on behind the last one. Two tables
help: a temporary one holds the batch; the other, kept while the version is filled, holds the narrow columns of all rows
so far, by which repeated keys are found and the version is described in the end.
"""

import logging
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any, Protocol

from django.db import DatabaseError, connection

from . import copying, packed, staging, versions
from .derived import COLUMNS
from .models import Dataset, DatasetVersion
from .taken import Taken

logger = logging.getLogger(__name__)

PLACE = {"place": "bigint", "file": "int", "line": "bigint"}
NARROW = (
    *("key", "digest", "split", "domain", "source", "criteria_count", "verifiable_count"),
    *("response_count", "preference_count", "verifiers"),
)
TYPES = {**PLACE, **COLUMNS}
NAMES = ", ".join(COLUMNS)
PROVISIONAL = 2**31 - 1  # numbers of versions that are still filled count down from here
# words wait in the search index's list until many of them are sorted in at once: far less work than row by row
SETTINGS = {"work_mem": "96MB", "gin_pending_list_limit": "1GB", "maintenance_work_mem": "96MB"}
SORT_IN = "SELECT gin_clean_pending_list('example_search'::regclass)"
SORT_EVERY = 25_000  # rows: every pass goes through most words of the index, however few rows wait

write = copying.writer(TYPES.values())


class Ready(Protocol):
    """A batch as `reading` gives it."""

    data: bytes
    lines: list[int]
    packed: list[tuple[Any, ...]]


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


def discard(version_id: int) -> None:
    """Takes away a version that is still filled, the examples that no other version lists, and the dataset if it was
    only made for it. Call inside a transaction, with the dataset's name locked."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM datasets_example AS example USING datasets_versionmember AS member
            WHERE member.version_id = %s AND example.id = member.example_id AND NOT EXISTS (
                SELECT 1 FROM datasets_versionmember AS other
                WHERE other.example_id = example.id AND other.version_id <> member.version_id
            )
            """,
            [version_id],
        )
        cursor.execute("DELETE FROM datasets_versionmember WHERE version_id = %s", [version_id])
        cursor.execute(f"DROP TABLE IF EXISTS {rows_table(version_id)}")
    DatasetVersion.every.filter(pk=version_id, digest="").delete()
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
        self._sorter = Sorter()
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
                self._store(cursor)
                gone = {line for _, line, *_ in repeated}
                lines = zip(ready.lines, ready.packed, strict=True)
                if self.packer:
                    self.packer.add([row for line, row in lines if line not in gone] if gone else ready.packed)
        return repeated

    def _repeated(self, cursor: Any) -> list[tuple[int, int, str, int, int]]:
        cursor.execute(f"""
            DELETE FROM import_batch USING {self._rows} AS known
            WHERE import_batch.key = known.key AND import_batch.place <> known.place
            RETURNING import_batch.file, import_batch.line, known.key, known.file, known.line
        """)  # noqa: S608  a number
        return sorted(cursor.fetchall())

    def _store(self, cursor: Any) -> None:
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
            """,
            [self.version.pk, self.stored, self.version.dataset_id],
        )
        before, self.stored = self.stored, self.stored + cursor.rowcount
        if before // SORT_EVERY < self.stored // SORT_EVERY:
            self._sorter.wake()

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
            cursor.execute(SORT_IN)  # what still waits in the index's list is read through by every search
        version.counts, version.facets, version.digest = counts, facets, digest
        version.number = versions.next_number(version.dataset)
        version.save()
        if self.packer:
            self.packer.save(version.pk)
        else:
            packed.pack(version.pk)
        return version, True

    def close(self) -> None:
        self._sorter.close()
        # in a broken transaction the table goes with the rollback, or with the connection
        if connection.is_usable() and not connection.needs_rollback:
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE IF EXISTS import_batch")


def _settle(cursor: Any) -> None:
    """The settings of an import, for this transaction."""
    for name, value in SETTINGS.items():
        cursor.execute("SELECT set_config(%s, %s, true)", [name, value])


class Sorter:
    """Sorts the waiting words into the search index over a connection of its own, while the import goes on.

    That is half of the database's work. The list belongs to the index and not to a transaction, so it can be done beside
    the one that fills it. Should it fail, the words wait, and are sorted in when the import ends.
    """

    def __init__(self) -> None:
        self._wanted, self._over = Event(), False
        self._thread: Thread | None = None

    def wake(self) -> None:
        """There is something to sort; while a pass is going on, another follows it."""
        self._wanted.set()
        if self._thread is None:
            self._thread = Thread(target=self._run, name="import-sorter", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._over = True
        self._wanted.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        aside = connection.copy()
        try:
            with aside.cursor() as cursor:
                cursor.execute(
                    "SELECT set_config('maintenance_work_mem', %s, false)", [SETTINGS["maintenance_work_mem"]]
                )
                while self._wanted.wait() and not self._over:
                    self._wanted.clear()
                    cursor.execute(SORT_IN)
        except DatabaseError:
            logger.warning("the search index is sorted when the import ends", exc_info=True)
        finally:
            aside.close()
