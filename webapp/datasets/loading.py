"""The database's side of an import: batches go straight into a version that nobody sees before the transaction ends.

Filling tables and indexes takes the server about as long as reading and checking the rows takes us, so both happen at
the same time, batch by batch. Two temporary tables help: one holds the batch, the other the narrow columns of all rows
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

logger = logging.getLogger(__name__)

PLACE = {"place": "bigint", "file": "int", "line": "bigint"}
NARROW = (
    *("key", "digest", "split", "domain", "source", "criteria_count", "verifiable_count"),
    *("response_count", "preference_count", "verifiers"),
)
TYPES = {**PLACE, **COLUMNS}
NAMES = ", ".join(COLUMNS)
PROVISIONAL = 2**31 - 1  # the number of a version that is still filled
# words wait in the search index's list until many of them are sorted in at once: far less work than row by row
SETTINGS = {"work_mem": "96MB", "gin_pending_list_limit": "1GB", "maintenance_work_mem": "96MB"}
SORT_IN = "SELECT gin_clean_pending_list('example_search'::regclass)"
SORT_FROM = 20_000  # rows after which a second connection is worth its while
PAUSE_S = 0.5

write = copying.writer(TYPES.values())


class Ready(Protocol):
    """A batch as `reading` gives it."""

    data: bytes
    lines: list[int]
    packed: list[tuple[Any, ...]]


def _table(name: str, columns: Iterator[str]) -> str:
    return (
        f"CREATE TEMPORARY TABLE {name} ({', '.join(f'{column} {TYPES[column]}' for column in columns)}) ON COMMIT DROP"
    )


class Loader:
    """Fills a new version of `dataset`; call inside one transaction, from its start to its end.

    `place` is a number that counts all rows of the import up; `file` and `line` say where people find a row.
    """

    def __init__(self, dataset: Dataset, lineage: versions.Lineage) -> None:
        self.dataset = dataset
        self.storing = True
        self.rows = 0
        self.packer = packed.Packer()
        self._sorter = Sorter()
        self.version = DatasetVersion(dataset=dataset, number=PROVISIONAL, digest="", lineage=lineage)
        with connection.cursor() as cursor:
            for name, value in SETTINGS.items():
                cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # else a million checks queue up for the commit
            cursor.execute("DROP TABLE IF EXISTS import_batch, import_rows")  # of an import in the same transaction
            cursor.execute(_table("import_batch", iter(TYPES)))
            cursor.execute(_table("import_rows", iter((*PLACE, *NARROW))))
            cursor.execute("CREATE UNIQUE INDEX ON import_rows (key)")
        self.version.save()

    def take(self, ready: Ready) -> list[tuple[int, int, str, int, int]]:
        """Takes a batch; returns the rows whose key came before: (file, line, key, file and line of the first). Without
        `storing` rows are only counted and compared, for the report of an import that is refused."""
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE import_batch")
            with cursor.copy("COPY import_batch FROM STDIN (FORMAT BINARY)") as to:
                to.write(copying.HEADER + ready.data + copying.TRAILER)
            narrow = ", ".join((*PLACE, *NARROW))
            cursor.execute(
                f"INSERT INTO import_rows ({narrow}) SELECT {narrow} FROM import_batch ORDER BY place "  # noqa: S608
                "ON CONFLICT (key) DO NOTHING"
            )
            repeated = self._repeated(cursor) if cursor.rowcount < len(ready.lines) else []
            if self.storing:
                self._store(cursor)
                gone = {line for _, line, *_ in repeated}
                lines = zip(ready.lines, ready.packed, strict=True)
                self.packer.add([row for line, row in lines if line not in gone] if gone else ready.packed)
        return repeated

    def _repeated(self, cursor: Any) -> list[tuple[int, int, str, int, int]]:
        cursor.execute("""
            DELETE FROM import_batch USING import_rows AS known
            WHERE import_batch.key = known.key AND import_batch.place <> known.place
            RETURNING import_batch.file, import_batch.line, known.key, known.file, known.line
        """)
        return sorted(cursor.fetchall())

    def _store(self, cursor: Any) -> None:
        cursor.execute(
            f"INSERT INTO datasets_example (dataset_id, {NAMES}, created_at) "  # noqa: S608  constants
            f"SELECT %s, {NAMES}, now() FROM import_batch ORDER BY place ON CONFLICT (dataset_id, digest) DO NOTHING",
            [self.dataset.pk],
        )
        cursor.execute(
            """
            INSERT INTO datasets_versionmember (version_id, example_id, position)
            SELECT %s, example.id, %s + row_number() OVER (ORDER BY batch.place) - 1
            FROM import_batch AS batch
            JOIN datasets_example AS example ON example.dataset_id = %s AND example.digest = batch.digest
            """,
            [self.version.pk, self.rows, self.dataset.pk],
        )
        self.rows += cursor.rowcount
        if self.rows >= SORT_FROM:
            self._sorter.start()

    def count(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM import_rows")
            return int(cursor.fetchone()[0])

    def finish(self) -> tuple[DatasetVersion, bool]:
        """The version with its number, counts and digest, and whether it is new: where a version with the same content
        is there already, that one comes back, and the caller rolls everything back."""
        counts, facets, digest = staging.facts()
        same = self.dataset.versions.filter(digest=digest).order_by("-number").first()
        if same:
            return same, False
        version = self.version
        version.counts, version.facets, version.digest = counts, facets, digest
        version.number = versions.next_number(self.dataset)
        version.save()
        self.packer.save(version.pk)
        with connection.cursor() as cursor:  # what still waits in the index's list is read through by every search
            cursor.execute(SORT_IN)
        return version, True

    def close(self) -> None:
        self._sorter.close()


class Sorter:
    """Sorts the waiting words into the search index over a connection of its own, while the import goes on.

    That is half of the database's work. The list belongs to the index and not to a transaction, so it can be done beside
    the one that fills it. Should it fail, the words wait, and are sorted in when the import ends.
    """

    def __init__(self) -> None:
        self._over = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="import-sorter", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        aside = connection.copy()
        try:
            with aside.cursor() as cursor:
                cursor.execute("SET maintenance_work_mem = %s", [SETTINGS["maintenance_work_mem"]])
                while not self._over.wait(PAUSE_S):
                    cursor.execute(SORT_IN)
        except DatabaseError:
            logger.warning("the search index is sorted when the import ends", exc_info=True)
        finally:
            aside.close()
