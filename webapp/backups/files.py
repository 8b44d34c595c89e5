"""The files that rows name, held as they were at the moment of the snapshot while they are copied.

Runs prune checkpoints and people delete runs at any time. So each file gets a second name right after the snapshot, in `var/pinned/`: a
hard link, which costs nothing, and a file that is removed afterwards still exists under it. Between the snapshot and the links no file that
rows name is deleted: a process that deletes waits. Only a run's own process prunes without asking; it never takes the newest checkpoint,
and its folder is looked at again if something vanished.

A file that is linked is either never changed (checkpoints, models, uploads) or only grows (events, rewards): of those, as many bytes are
copied as it had. Small files may be replaced; they are copied at once.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from webapp.core.background.jobs import OPEN
from webapp.core.database import locks
from webapp.datasets.models import ImportJob
from webapp.experiments.models import Artifact, Run
from webapp.inference.models import RegisteredModel
from webapp.weights.models import WeightsJob

from .problems import Damaged
from .rows import Connection

SMALL = 64_000
BLOCK = 1 << 20
AGAIN = 10  # looks at a folder in which files vanish
PINNED = "pinned"


@contextmanager
def snapshot_lock() -> Iterator[None]:
    """A lock around the snapshot and the links: code that removes files shares it, and waits."""
    with locks.exclusive(locks.Work.BACKUP_FILES, 0, wait=True):
        yield


@dataclass(frozen=True)
class NamedFiles:
    """The files that the rows of a snapshot name: places below `var`, places elsewhere, and files whose rows are of little use without
    them."""

    inside: tuple[str, ...]
    elsewhere: tuple[str, ...]
    needed: tuple[str, ...]


@dataclass(frozen=True)
class Pinned:
    """A file below `var` as it was, and where its bytes are kept for now."""

    path: str
    bytes: int
    modified: int
    kept: Path


def named(connection: Connection, var: Path) -> NamedFiles:
    inside = {f"runs/{pk}" for pk in _ids(connection, Run)} | {f"weights/{pk}" for pk in _ids(connection, WeightsJob)}
    elsewhere, needed = set[str](), set[str]()
    stored = f"SELECT DISTINCT run_id, path, registered_id FROM {Artifact._meta.db_table} WHERE files <> '[]'"  # noqa: S608
    in_store = connection.execute(stored.encode()).fetchall()
    elsewhere |= {
        f"{settings.ENV.artifact_store or 'the artifact store'}/runs/{run}/{path}" for run, path, _ in in_store
    }
    there = [model for _, _, model in in_store if model]
    models = f"SELECT path FROM {RegisteredModel._meta.db_table} WHERE source <> 'hub' AND id <> ALL(%s)"  # noqa: S608  a table's name
    uploads = f"SELECT file_path FROM {ImportJob._meta.db_table} WHERE state = ANY(%s)"  # noqa: S608
    found = connection.execute(models.encode(), [there]).fetchall()
    found += connection.execute(uploads.encode(), [list(OPEN)]).fetchall()
    for (text,) in found:
        path = Path(text)
        if path.is_relative_to(var):
            place = path.relative_to(var).as_posix()
            needed.add(place)
            if not place.startswith("runs/"):
                inside.add(place)
        elif path.is_absolute():
            elsewhere.add(text)
    return NamedFiles(tuple(sorted(inside)), tuple(sorted(elsewhere)), tuple(sorted(needed)))


def _ids(connection: Connection, model: type[Run] | type[WeightsJob]) -> list[int]:
    query = f"SELECT id FROM {model._meta.db_table}"  # noqa: S608  a table's name
    return [pk for (pk,) in connection.execute(query.encode()).fetchall()]


class Pins:
    """Second names for files, until `release`."""

    def __init__(self, var: Path, name: str) -> None:
        self.var, self.root = var, var / PINNED / name

    def take(self, places: tuple[str, ...]) -> list[Pinned]:
        self.root.mkdir(parents=True, mode=0o700)
        return [file for place in places for file in self._of(place)]

    def release(self) -> None:
        """Removes the second names, also those of a killed backup. The caller holds the lock of backups."""
        shutil.rmtree(self.var / PINNED, ignore_errors=True)

    def _of(self, place: str) -> list[Pinned]:
        found: dict[str, Pinned] = {}
        for _ in range(AGAIN):
            vanished = False
            for path in _files(self.var / place):
                name = path.relative_to(self.var).as_posix()
                if name not in found:
                    try:
                        found[name] = self._pin(path, name)
                    except FileNotFoundError:
                        vanished = True
            if not vanished:
                break
        return list(found.values())

    def _pin(self, path: Path, name: str) -> Pinned:
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        facts = path.stat()
        if facts.st_size <= SMALL:
            shutil.copy2(path, target)
            facts = target.stat()
        else:
            try:
                os.link(path, target)
            except FileNotFoundError:
                raise
            except OSError:  # another file system, or one without links
                shutil.copy2(path, target)
                facts = target.stat()
        return Pinned(name, facts.st_size, facts.st_mtime_ns, target)


def _files(place: Path) -> Iterator[Path]:
    """All complete files. Files that are being written are recognised by their names or folders."""
    if place.is_file():
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(each for each in folders if not each.endswith(".partial"))
        for name in sorted(names):
            path = Path(folder) / name
            if not name.endswith((".partial", ".new")) and path.is_file() and not path.is_symlink():
                yield path


def content(file: Pinned) -> Iterator[bytes]:
    """The bytes that the file had. Raises Damaged if it has become shorter."""
    left = file.bytes
    with file.kept.open("rb") as stream:
        while left and (block := stream.read(min(BLOCK, left))):
            left -= len(block)
            yield block
    if left:
        raise Damaged(f"{file.path} has become shorter while it was copied.")
