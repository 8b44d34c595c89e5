"""Restores a backup as an installation, in another folder, on another machine, under another port.

The new folder gets its own Postgres, or the rows go to an empty database of another server. Tables are made as the migrations in the backup
made them, filled, compared with the backup text for text, and only then upgraded.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db.migrations.loader import MigrationLoader

from webapp.localstack.postgres import CannotRun, Postgres
from webapp.machine.places import RESTORING, close_to_others
from webapp.version import VERSION

from . import loading, rows
from .loading import At, EndedWithOther
from .manifest import KeptFile, Manifest
from .problems import BackupProblem, Damaged, explain_full_disk
from .store import ContentStore

# The places in which an installation keeps absolute paths of its own files: table, column, key
PATHS = (("inference_registeredmodel", "path"), ("datasets_importjob", "file_path"))
Say = Callable[[str], None]
Report = Callable[[int, int], None]  # bytes done, bytes in all; raises Cancelled if the end is wanted


@dataclass(frozen=True)
class Restored:
    """The numbers of what was restored and compared. `unreadable`: stored secrets that open under no key; `pages`: addresses with their status,
    if they were opened."""

    rows: int
    tables: int
    files: int
    bytes: int
    seconds: float
    unreadable: int
    pages: dict[str, int]


def restore(
    store: ContentStore,
    kept: Manifest,
    into: Path,
    *,
    database: str | None = None,
    say: Say = lambda words: None,
    report: Report = lambda done, total: None,
    look: bool = False,
) -> Restored:
    """Restores into the folder `into`, which must be empty, and into `database`, else into a Postgres of its own there.

    `report` hears of bytes done and in all, from several threads. `look`: opens pages as well. Raises BackupProblem; then neither the
    folder nor the database keeps anything of it.
    """
    began = time.monotonic()
    into = into.resolve()
    check_form(kept)
    progress = _Progress(kept, report)
    at = progress.at
    server = None if database else _server(into)
    _empty(into, server)
    close_to_others(into)
    (into / RESTORING).write_text("This folder is being restored, or was when the restoration was killed: remove it.\n")
    try:
        files = partial(_files, store, kept, into, at)
        with explain_full_disk(into), _running(server), _beside(files, progress.ended) as copied:
            _keys(kept, into)
            url = database or server.url() if server else str(database)
            with _Inside(url, into, kept.former) as inside:
                _rows(store, kept, into, url, inside, say, at)
                unreadable = inside.do("reseal")
                copied.result()
                say(f"{len(kept.files):,} files are there, each with its digest.")
                pages = inside.do("look") if look else {}
        if server:
            _to_disk(server)
        (into / RESTORING).unlink()
    except BaseException:
        _clear(into, server)
        raise
    seconds = time.monotonic() - began
    return Restored(kept.rows, len(kept.tables), len(kept.files), kept.size, seconds, unreadable, pages)


class _Progress:
    """Bytes: of files once, of rows twice, because they are loaded and read again."""

    def __init__(self, kept: Manifest, report: Report) -> None:
        self.ended = threading.Event()  # of rows or files, by which the other ends as well
        self._report, self._lock, self._done = report, threading.Lock(), 0
        self._total = kept.size + sum(table.bytes for table in kept.tables)

    def at(self, more: int) -> None:
        if self.ended.is_set():
            raise EndedWithOther
        with self._lock:
            self._done += more
            done = self._done
        self._report(done, self._total)


@contextmanager
def _beside(work: Callable[[], None], ended: threading.Event) -> Iterator[Future[None]]:
    """Does `work` in a thread during the block. If one of the two fails, the other ends too, and the first reason is reported."""

    def working() -> None:
        try:
            work()
        except BaseException:
            ended.set()
            raise

    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(working)
        try:
            yield begun
        except BaseException as error:
            ended.set()
            if isinstance(error, EndedWithOther):
                begun.result()
            raise


def _server(into: Path) -> Postgres:
    try:
        return Postgres(into, durable=False)
    except CannotRun as error:
        raise BackupProblem(str(error)) from error


def check_form(kept: Manifest) -> None:
    """Raises BackupProblem if a newer program made the backup: this one cannot know what its rows mean."""
    known = set(MigrationLoader(None).graph.nodes)
    if unknown := [f"{app}.{name}" for app, name in kept.migrations if (app, name) not in known]:
        raise BackupProblem(
            f"This backup was made by Touchstone {kept.version}, which is newer than this one ({VERSION}): "
            f"it has {unknown[-1]}. Install that version, then restore."
        )


def _empty(into: Path, server: Postgres | None) -> None:
    """Checks that the target is empty. Only a key may lie there: each command makes one if it is missing, and people put theirs there."""
    if into.is_file():
        raise BackupProblem(f"{into} is a file. Name a folder that is empty, or not there yet.")
    there = sorted(path.name for path in into.iterdir()) if into.is_dir() else []
    if others := [name for name in there if name != "secret_key"]:
        raise BackupProblem(
            f"{into} is not empty: it contains {others[0]}. Name a folder that is empty, or not there yet."
        )
    if server and server.data.exists() and any(server.data.iterdir()):
        raise BackupProblem(
            f"The database of {into} belongs in {server.data}, but that folder is not empty. Move its contents away."
        )


@contextmanager
def _running(server: Postgres | None) -> Iterator[None]:
    if server is None:
        yield
        return
    try:
        server.start()
        yield
    except CannotRun as error:
        raise BackupProblem(str(error)) from error
    finally:
        server.stop()
        (server.root / "postgres.log").unlink(missing_ok=True)


def _keys(kept: Manifest, into: Path) -> None:
    """The key that sealed the secrets in the rows, if the backup has it; else the key in the folder, or a new one."""
    path = into / "secret_key"
    key = kept.key or (None if path.exists() else secrets.token_urlsafe(48))
    if key is not None:
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
            file.write(key)


def _rows(store: ContentStore, kept: Manifest, into: Path, url: str, inside: "_Inside", say: Say, at: At) -> None:
    try:
        with rows.connected(url) as connection:
            if there := rows.tables(connection):
                raise BackupProblem(f"The database is not empty: it has a table {there[0].name}. Name an empty one.")
            try:
                inside.do("tables", kept.migrations)
                loading.load(url, kept.tables, kept.sequences, _content(store), at)
                say(f"{kept.rows:,} rows in {len(kept.tables)} tables are there, and are what was backed up.")
                inside.do("upgrade")
                _move(connection, Path(kept.var), into)
            except BaseException:
                _drop(connection)
                raise
    except psycopg.OperationalError as error:
        raise BackupProblem(
            f"The database cannot be reached, or the connection was lost: {str(error).strip()}"
        ) from error
    except psycopg.Error as error:
        raise BackupProblem(f"The database refused what the backup holds: {str(error).strip()}") from error


def _content(store: ContentStore) -> loading.Content:
    return lambda table, checked: store.read(table.digest, packed=True, checked=checked)


def _files(store: ContentStore, kept: Manifest, into: Path, at: At) -> None:
    """Several at a time, each compared while it is written. Raises Damaged if a content is not what its digest says."""
    ordered = sorted(kept.files, key=lambda file: file.bytes, reverse=True)
    loading.all_of(lambda file, at: _file(store, file, into, at), ordered, at)


def _file(store: ContentStore, file: KeptFile, into: Path, at: At) -> None:
    path = (into / file.path).resolve()
    if not path.is_relative_to(into):
        raise Damaged(f"The backup names a file outside of its folder: {file.path}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with explain_full_disk(into), path.open("wb") as target:
        for block in store.read(file.digest):
            target.write(block)
            at(len(block))
        target.flush()
        os.fsync(target.fileno())
    os.utime(path, ns=(file.modified, file.modified))


def _move(connection: rows.Connection, old: Path, new: Path) -> None:
    """Changes rows that name files of the old folder to the new one."""
    for table, column in PATHS:
        query = f"UPDATE {table} SET {column} = %s || substr({column}, %s) WHERE starts_with({column}, %s)"  # noqa: S608
        connection.execute(query.encode(), [str(new), len(str(old)) + 1, f"{old}/"])


class _Inside:
    """A process of this program on the new database: see `restored_database`."""

    def __init__(self, url: str, into: Path, former: tuple[str, ...]) -> None:
        # the new folder's key, not that of this program's own environment and settings file; former keys of both
        key = (into / "secret_key").read_text().strip()
        ours = {"TOUCHSTONE_VAR": str(into), "DATABASE_URL": url, "SECRET_KEY": key}
        ours["SECRET_KEY_FALLBACKS"] = ",".join((*former, *settings.SECRET_KEY_FALLBACKS))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SECRET_KEY")}
        self._words = (into / RESTORING).open("a+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "webapp.backups.restored_database"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env={**inherited, **ours},
            cwd=settings.BASE_DIR,
            text=True,
        )

    def __enter__(self) -> "_Inside":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._words.close()

    def do(self, step: str, argument: object = None) -> Any:
        """The result of a step. Raises BackupProblem."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin and stdout  # noqa: S101  pipes, as asked for
        try:
            stdin.write(json.dumps([step, argument]) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._words.seek(0)
            said = self._words.read().partition("\n")[2].strip()  # behind the line that says what the file is
            raise BackupProblem(f"The new installation cannot be opened: {said[-500:]}")
        told = json.loads(line)
        if isinstance(told, dict) and "problem" in told:
            raise BackupProblem(f"The new installation is not right ({step}): {told['problem']}")
        return told


def _drop(connection: rows.Connection) -> None:
    """Leaves a database of somebody's server as empty as it was."""
    if not connection.closed:
        for table in rows.tables(connection):
            connection.execute(f'DROP TABLE IF EXISTS "{table.name}" CASCADE'.encode())


def _to_disk(server: Postgres) -> None:
    try:
        server.to_disk()
    except CannotRun as error:
        raise BackupProblem(f"The database cannot be written to the disk: {error}") from error


def _clear(into: Path, server: Postgres | None) -> None:
    """Removes what a failed restoration has written; the folder itself and a key that was there stay."""
    if server:
        shutil.rmtree(server.data, ignore_errors=True)
    for path in into.iterdir():
        if path.name != "secret_key":
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
