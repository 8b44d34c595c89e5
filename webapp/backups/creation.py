"""Makes a backup: rows and files of one moment, while the product runs.

Rows come from one snapshot of the database, which keeps nobody from writing. The files that these rows name get second names right after
the snapshot. The manifest is written last.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection
from django.template.defaultfilters import filesizeformat
from psycopg.pq import Conninfo

from webapp.version import VERSION

from . import files, manifest, rows
from .manifest import KeptFile, Manifest, TableRows
from .problems import BackupProblem, Damaged
from .store import ContentStore

Report = Callable[
    [int, int], None
]  # bytes done, bytes in all as far as known; raises Cancelled where the end is wanted
NAME = "%Y-%m-%dT%H%M%SZ"


def address() -> dict[str, Any]:
    """The database of this process, for a connection of its own."""
    told = connection.get_connection_params()
    ours = {option.keyword.decode() for option in Conninfo.get_defaults()}  # Django adds arguments of the driver
    return {name: value for name, value in told.items() if name in ours and value}


def mark_of(key: str) -> str:
    """A text that tells whether a SECRET_KEY is the same. The key is long and random, so the text reveals nothing about it."""
    return hashlib.sha256(b"touchstone backup mark " + key.encode()).hexdigest()[:16]


def make(store: ContentStore, report: Report) -> tuple[str, Manifest]:
    """Makes a backup in the store; its name and what it says of itself. Raises BackupProblem.

    If it fails, earlier backups stay as they were, and files that were copied need not be copied again.
    """
    with store.alone():
        now = datetime.now(UTC)
        name = _free_name(store, now)
        pins = files.Pins(settings.VAR, name)
        pins.release()
        try:
            made = _Making(store, report, pins).run(now)
        finally:
            pins.release()
        store.write_manifest(name, made.model_dump_json().encode())
    return name, made


def _free_name(store: ContentStore, now: datetime) -> str:
    name, taken = now.strftime(NAME), set(store.names())
    number = 1
    while name in taken:
        number += 1
        name = f"{now.strftime(NAME)}-{number}"
    return name


class _Making:
    """One backup under way: counts what is done and what was added."""

    def __init__(self, store: ContentStore, report: Report, pins: files.Pins) -> None:
        self._store, self._report, self._pins = store, report, pins
        self._done = self._total = self._added = 0
        self._known = _known(store)

    def run(self, now: datetime) -> Manifest:
        began = time.monotonic()
        with rows.snapshot(address()) as taken:
            with files.snapshot_lock():
                found = taken.execute("SELECT pg_database_size(current_database())").fetchone()  # the snapshot begins
                named = files.named(taken, settings.VAR)
                pinned = self._pins.take(named.inside)
            self._total = (found[0] if found else 0) + sum(file.bytes for file in pinned)
            migrations = taken.execute("SELECT app, name FROM django_migrations ORDER BY id").fetchall()
            counters = rows.sequences(taken)
            server = taken.info.server_version
            tables = tuple(self._table(taken, table) for table in rows.tables(taken))
        self._total = self._done + sum(file.bytes for file in pinned)
        self._room(pinned)
        kept = tuple(self._file(file) for file in pinned)
        return Manifest(
            made_at=now,
            seconds=round(time.monotonic() - began, 3),
            version=VERSION,
            server=f"{server // 10000}.{server % 10000}",
            var=str(settings.VAR),
            migrations=tuple((app, name) for app, name in migrations),
            tables=tables,
            sequences=counters,
            files=kept,
            elsewhere=named.elsewhere,
            lost=_lost(named, kept),
            key_mark=mark_of(settings.SECRET_KEY),
            key=settings.SECRET_KEY if self._store.key else None,
            former=tuple(settings.SECRET_KEY_FALLBACKS) if self._store.key else (),
            added=self._added,
        )

    def _table(self, taken: rows.Connection, table: rows.DatabaseTable) -> TableRows:
        counts: list[int] = []
        stored = self._store.add(self._told(rows.copy_out(taken, table, counts.append)), packed=True)
        self._added += stored.added
        return TableRows(
            name=table.name,
            columns=table.columns,
            types=table.types,
            rows=counts[0],
            bytes=stored.size,
            digest=stored.digest,
        )

    def _file(self, file: files.Pinned) -> KeptFile:
        """Copies the file, or only names it if the last backups have it: files with the same name, size and time are the same."""
        digest = self._known.get((file.path, file.bytes, file.modified))
        if digest and self._store.has(digest):
            self._at(file.bytes)
        else:
            stored = self._store.add(self._told(files.content(file)))
            if stored.size != file.bytes:
                raise Damaged(f"{file.path} has changed while it was copied.")
            digest, self._added = stored.digest, self._added + stored.added
        return KeptFile(path=file.path, bytes=file.bytes, modified=file.modified, digest=digest)

    def _told(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._at(len(block))
            yield block

    def _at(self, more: int) -> None:
        self._done += more
        self._report(self._done, max(self._done, self._total))

    def _room(self, pinned: list[files.Pinned]) -> None:
        """Fails before the copying if there is not enough room. A file that exists under another name may still be counted."""
        new = sum(file.bytes for file in pinned if (file.path, file.bytes, file.modified) not in self._known)
        free = self._store.place.free()
        if free is not None and new > free:
            raise BackupProblem(
                f"The disk of {self._store.place.title} has {filesizeformat(free)} free; this backup needs {filesizeformat(new)}. "
                "Free some space, or name another folder; earlier backups are as they were."
            )


def _known(store: ContentStore) -> Mapping[tuple[str, int, int], str]:
    """The digests of the files of the last backup that can be read."""
    for name in reversed(store.names()):
        try:
            found = manifest.read(store, name)
        except BackupProblem:
            continue
        if found.var == str(settings.VAR):
            return {(file.path, file.bytes, file.modified): file.digest for file in found.files}
    return {}


def _lost(named: files.NamedFiles, kept: tuple[KeptFile, ...]) -> tuple[str, ...]:
    """Places that rows name but that have no file: somebody removed them by hand before."""
    paths = [file.path for file in kept]
    return tuple(place for place in named.needed if not any(p == place or p.startswith(f"{place}/") for p in paths))
