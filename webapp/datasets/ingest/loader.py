"""The database's side of an import: batch by batch, rows are copied into a version that nobody sees before it is complete.

The server takes nearly as long to fill tables and indexes as we take to read and check the rows, so for a large file both happen at the
same
time (see `processes`). Every batch is committed, so that an import whose worker died continues after the last one. Repeated and existing
rows
are found first, and the others are copied directly into their tables. A separate table, kept while the version is filled, holds the narrow
columns of all rows so far, by which the version is described in the end.
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from operator import add
from typing import Any

import numpy as np
from django.db import connection
from django.utils import timezone
from numpy.typing import NDArray

from ..columns import packed
from ..columns.derive import COLUMNS
from ..encoding import arrow, copy_format
from ..index import postings
from ..models import Dataset, DatasetVersion
from ..versions import planner, staging, writer
from ..versions.split_rule import Settled
from . import split_conflicts
from .checkpoint import ImportCheckpoint
from .duplicates import Repeat, SeenKeys
from .reader import NARROW, LoadBatch

Kept = NDArray[np.bool_]
PLACE = {"file": "int", "line": "bigint"}
GROUND = {"ground": "int"}  # the ground of the side: see `split_rule`
ROW = {**PLACE, **GROUND, **{name: COLUMNS[name] for name in NARROW}}
EXAMPLE = ("id", "dataset_id", "created_at", *COLUMNS)
MEMBER = ("version_id", "example_id", "position")
PROVISIONAL = 2**31 - 1  # versions that are still being filled are numbered downwards from here
SETTINGS = {"work_mem": "96MB"}
# a server that crashes may lose the last batches; the rest says how far it goes, and the import continues from there
OF_BATCH = {"synchronous_commit": "off"}

# examples of a version from a position on, as `postings.index` takes them
MEMBERS = """
    (SELECT example.id FROM datasets_versionmember AS member JOIN datasets_example AS example
     ON example.id = member.example_id WHERE member.version_id = %s AND member.position >= %s) AS stored
"""


def rows_table(version_id: int) -> str:
    return f"import_rows_{int(version_id)}"


def begin(dataset: Dataset, lineage: writer.Lineage, import_id: int) -> DatasetVersion:
    """An empty version that `Loader` fills; call inside a transaction. No other import of the id is being filled."""
    version = DatasetVersion.every.create(dataset=dataset, number=PROVISIONAL - import_id, digest="", lineage=lineage)
    rows = rows_table(version.pk)
    with connection.cursor() as cursor:
        # not logged: if the server itself crashes, the table is empty afterwards, and the import starts over; it is dropped
        # in the end, so it needs neither vacuum nor statistics
        columns = ", ".join(f"{name} {kind}" for name, kind in ROW.items())
        cursor.execute(f"CREATE UNLOGGED TABLE {rows} ({columns}) WITH (autovacuum_enabled = false)")
    return version


def intact(taken: ImportCheckpoint) -> bool:
    """Whether the rows that were taken are still in the table, to compare others with them."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {rows_table(taken.version)})")  # noqa: S608  a number
        return not taken.good or bool(cursor.fetchone()[0])


def discard(version_id: int, *, shared: bool = False) -> None:
    """Removes a version that is still being filled, the examples that no other version lists, and the dataset if it was made only for this
    version. Call inside a transaction, with the dataset's name locked.

    `shared`: a version made while nobody filled this one may list its examples, and relies on its words.
    """
    version = DatasetVersion.every.get(pk=version_id)
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM datasets_wordhits WHERE dataset_id = %s AND origin = %s", [version.dataset_id, version_id]
        )
        if shared:
            postings.index(version.dataset_id, MEMBERS, [version_id, 0])
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
    """Fills a version that `begin` made, after what is `taken` already. `take` and `finish` each need a transaction."""

    def __init__(self, version: DatasetVersion, taken: ImportCheckpoint) -> None:
        self.version = version
        self.storing = True
        self.good, self.stored = taken.good, taken.stored
        self.packer = (
            None if taken.stored else packed.Packer()
        )  # rows that an earlier worker stored are read again for it
        self._rows = rows_table(version.pk)
        self._seen = SeenKeys(self._rows)
        # a dataset without another version has only the examples of this one
        self._first = not DatasetVersion.every.filter(dataset=version.dataset_id).exclude(pk=version.pk).exists()
        self._indexer = postings.Indexer(version.dataset_id, version.pk)
        if taken.stored > taken.indexed:
            postings.index(version.dataset_id, MEMBERS, [version.pk, taken.indexed], version.pk)
        self._spoken = taken.stored  # members whose words an earlier worker or the lines above have written

    @property
    def indexed(self) -> int:
        """The number of members, from the first on, that are found by their words."""
        return self._spoken + self._indexer.written

    def take(self, ready: LoadBatch) -> list[Repeat]:
        """Takes the good rows of a batch, and returns those whose key came before. Without `storing`, rows are only counted and compared,
        for the report of a refused import."""
        with connection.cursor() as cursor:
            _settle(cursor, SETTINGS | OF_BATCH)
            repeats = self._seen.repeats(ready.place.file, ready.keys, ready.lines, ready.digests)
            kept = np.ones(len(ready.keys), bool)
            kept[list(repeats)] = False
            count = int(kept.sum())
            lines = np.array(ready.lines, np.int64)[kept]
            grounds = np.array(ready.grounds, np.int32)[kept]
            heads = copy_format.starts(len(ROW), np.full(count, ready.place.file, np.int32), lines, grounds)
            copy_format.copy(cursor, self._rows, ROW, map(add, heads, compress(ready.narrow, kept)))
            self.good += count
            if self.storing:
                ids = self._store(cursor, ready, kept)
                if self.packer:
                    self.packer.add(ids, ready.columns, kept)
        return list(repeats.values())

    def contradictions(self, names: Sequence[str]) -> dict[int, Settled]:
        """The prompts and groups that the rows put on both sides, each with the side that it should have; empty if there
        are none. `names` are those of the files."""
        return split_conflicts.settled(split_conflicts.InTable(self._rows), names)

    def _store(self, cursor: Any, ready: LoadBatch, kept: Kept) -> postings.Ids:
        """Stores the `kept` rows whose content is new, and lists all `kept` rows. Returns the ids of their examples, one for each row of
        the batch."""
        there = {} if self._first else self._there(cursor, ready.digests)
        ids = np.array([there.get(each, 0) for each in ready.digests], np.int64)
        new = kept & (ids == 0)
        dataset = np.full(int(new.sum()), self.version.dataset_id, np.int64)
        ids[new] = _new_ids(cursor, len(dataset))
        heads = copy_format.starts(
            len(EXAMPLE), ids[new], dataset, np.full(len(dataset), copy_format.moment(timezone.now()))
        )
        copy_format.copy(cursor, "datasets_example", EXAMPLE, map(add, heads, compress(ready.wide, new)))
        count = int(kept.sum())
        version, places = np.full(count, self.version.pk, np.int64), np.arange(count, dtype=np.int32)
        members = copy_format.starts(len(MEMBER), version, ids[kept], places + np.int32(self.stored))
        copy_format.copy(cursor, "datasets_versionmember", MEMBER, members)
        if count:
            planner.analyze_emptied(planner.EXAMPLES, planner.MEMBERS)
        self.stored += count
        self._indexer.add(np.where(new, ids, 0)[kept], arrow.only(ready.texts, kept))
        return ids

    def _there(self, cursor: Any, digests: list[str]) -> dict[str, int]:
        cursor.execute(
            "SELECT digest, id FROM datasets_example WHERE dataset_id = %s AND digest = ANY(%s)",
            [self.version.dataset_id, digests],
        )
        return dict(cursor.fetchall())

    def finish(self) -> tuple[DatasetVersion, bool]:
        """The version with its number, counts and digest, and whether it is new. If there is a version with the same content already, that
        one is returned, and the filled one is removed."""
        with connection.cursor() as cursor:
            _settle(cursor, SETTINGS)
        counts, facets, digest = staging.facts(self._rows)
        version = self.version
        same = DatasetVersion.objects.filter(dataset=version.dataset_id, digest=digest).order_by("-number").first()
        if same:
            discard(version.pk)
            return same, False
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {self._rows}")
        self._indexer.finish()
        version.counts, version.facets, version.digest = counts, facets, digest
        version.number = writer.next_number(version.dataset)
        version.save()
        if self.packer:
            self.packer.save(version.pk)
        else:
            packed.pack(version.pk)
        return version, True


def _new_ids(cursor: Any, count: int) -> NDArray[np.int64]:
    """New ids as one value, because as rows they would be millions of objects."""
    cursor.execute(
        "SELECT string_agg(int8send(nextval('datasets_example_id_seq')), '') FROM generate_series(1, %s)", [count]
    )
    return np.frombuffer(cursor.fetchone()[0] or b"", ">i8").astype(np.int64)


def _settle(cursor: Any, settings: Mapping[str, str]) -> None:
    """Applies the settings to this transaction."""
    for name, value in settings.items():
        cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
