"""Backups in object storage: Amazon S3 and compatible stores, Google Cloud Storage, Azure.

An object exists once its upload is complete, or not at all, so a name never has half a content. A content is first written to a file in
`var`, because its name is known only at its end, and so that a broken upload can start again. A read continues where its connection
broke.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from socket import gethostname
from typing import Any, TypeVar

import obstore
from django.conf import settings
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from webapp.core.storage import buckets
from webapp.core.storage.buckets import UnusableBucket

from .places import LOCKS, ContentReader, no_backups_here
from .problems import BackupProblem, Damaged, explain_full_disk

logger = logging.getLogger(__name__)
SCRATCH = "uploading"
LOCK = "lock"
PART = 16 << 20  # bytes; 10,000 parts are the most that S3 takes, so an object has at most 160 GB
AT_ONCE = 4  # parts under way
BLOCK = 8 << 20
BATCH = 1_000  # names that one request removes; more S3 does not take
TRIES = 4  # of a whole upload, and of a download that makes no way; each request is tried again by the library besides
PAUSE_S = 1.0  # then twice as long each time
REFRESH_S = 60.0
STALE = timedelta(minutes=15)  # a lock that nobody has refreshed for this long is a dead process's
T = TypeVar("T")


class Bucket:
    """`address`: scheme://BUCKET/FOLDER. Raises BackupProblem if it is none, and Refused if its endpoint is closed."""

    def __init__(self, address: str) -> None:
        self.title = address.rstrip("/")
        self.scratch = (
            settings.VAR / SCRATCH / sha256(self.title.encode()).hexdigest()[:16]
        )  # its lock is for this place alone
        self._by = buckets.access("BACKUP")
        try:
            self._store = buckets.open_bucket(self.title, self._by)
        except UnusableBucket as error:
            raise BackupProblem(str(error)) from None
        self._there: set[str] | None = None  # names, known while we alone write
        self._guard, self._claim, self._lost = threading.Lock(), dict[str, Any](), False

    def names(self, under: str = "") -> Iterator[str]:
        if not under:
            with self._words():
                listed = obstore.list_with_delimiter(self._store)["objects"]
            yield from (each["path"] for each in listed if each["path"] not in LOCKS)
            return
        with self._words():
            for listed in obstore.list(self._store, f"{under}/", chunk_size=1000):
                yield from (each["path"] for each in listed)

    def has(self, name: str) -> bool:
        if self._there is not None and name.startswith("objects/"):
            return name in self._there
        return self._size(name) is not None

    def keep(self, partial: Path, name: str) -> None:
        self._ours(surely=not name.startswith("objects/"))
        size = partial.stat().st_size

        def upload() -> None:
            obstore.put(self._store, name, partial, chunk_size=PART, max_concurrency=AT_ONCE)
            if (found := obstore.head(self._store, name)["size"]) != size:
                obstore.delete(self._store, name)
                raise Damaged(f"{self.title} has kept {found:,} bytes of {name}, which has {size:,}.")

        try:
            self._again(upload)
        except FileNotFoundError:
            raise self._no_such() from None
        partial.unlink()
        if self._there is not None:
            self._there.add(name)

    @contextmanager
    def read(self, name: str) -> Iterator[ContentReader]:
        if (size := self._size(name)) is None:
            raise Damaged(f"A file of the backup is missing: {self.title}/{name}.")
        yield _Download(self, name, size)

    def _size(self, name: str) -> int | None:
        with self._words():
            try:
                return int(obstore.head(self._store, name)["size"])
            except FileNotFoundError:
                return None

    def block(self, name: str, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`. Raises BackupProblem, and Damaged if it has gone."""
        try:
            return self._again(lambda: bytes(obstore.get_range(self._store, name, start=start, end=end)))
        except FileNotFoundError:
            raise Damaged(f"A file of the backup has been removed while it was read: {self.title}/{name}.") from None

    def remove(self, names: Iterable[str]) -> None:
        """Removes objects. It asks before each request whether the lock is still ours: otherwise another process's backup may rest on
        them."""
        listed = list(names)
        for first in range(0, len(listed), BATCH):
            batch = listed[first : first + BATCH]
            self._ours(surely=True)
            with self._words():
                obstore.delete(self._store, batch)
            if self._there is not None:
                self._there.difference_update(batch)

    def free(self) -> int | None:
        return None

    def begin(self) -> None:
        with self._words():
            for listed in obstore.list(self._store):
                for each in listed:
                    if each["path"] not in LOCKS:
                        raise no_backups_here(self.title, each["path"])

    @contextmanager
    def writing(self) -> Iterator[None]:
        self.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._claimed():
            for left in self.scratch.iterdir():
                left.unlink(missing_ok=True)
            self._there = set(self.names("objects"))
            try:
                yield
            finally:
                self._there = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Takes no lock, because a reader may have no right to write. Contents that are removed meanwhile are reported as missing."""
        yield

    def removing(self) -> AbstractContextManager[None]:
        return self.writing()

    @contextmanager
    def _claimed(self) -> Iterator[None]:
        """Holds the object `lock`, which only one process can make, and renews it every minute."""
        self._claim, self._lost, over = self._taken(), False, threading.Event()
        refreshing = threading.Thread(target=self._refresh, args=[over], daemon=True)
        refreshing.start()
        try:
            yield
        finally:
            over.set()
            refreshing.join()
            with suppress(BackupProblem):
                self._ours(surely=True)
                with self._words():
                    obstore.delete(self._store, LOCK)
            self._claim = {}

    def _taken(self) -> dict[str, Any]:
        said = json.dumps({"host": gethostname(), "pid": os.getpid(), "began": _began(os.getpid())}).encode()
        with self._words():
            try:
                return {**obstore.put(self._store, LOCK, said, mode="create")}
            except (AlreadyExistsError, PreconditionError):
                pass
            try:
                found = obstore.get(self._store, LOCK)
                held = found.meta
                self._dead(_holder(bytes(found.bytes())), held["last_modified"])
                return {**obstore.put(self._store, LOCK, said, mode=_version(held))}
            except (PreconditionError, AlreadyExistsError, FileNotFoundError):  # somebody was faster, or has just ended
                raise BackupProblem(f"Another backup is being made in {self.title}.") from None

    def _dead(self, holder: dict[str, Any], seen: datetime) -> None:
        """Raises BackupProblem unless the holder of the lock is dead: no such process here, or no sign of life for a quarter of an hour."""
        if holder["host"] == gethostname() and _began(holder["pid"]) != holder["began"]:
            return
        if datetime.now(UTC) - seen < STALE:
            raise BackupProblem(
                f"Another backup is being made in {self.title}, by {holder['host']}. If that process is dead, "
                f"try again after {seen + STALE:%H:%M} UTC."
            )

    def _refresh(self, over: threading.Event) -> None:
        while not self._lost and not over.wait(REFRESH_S):
            with self._guard:
                try:
                    found = bytes(obstore.get(self._store, LOCK).bytes())
                    self._claim = {**obstore.put(self._store, LOCK, found, mode=_version(self._claim))}
                except (PreconditionError, AlreadyExistsError, FileNotFoundError):
                    self._lost = True
                except BaseError as error:  # away for now; the lock is ours as long as nobody else takes it
                    logger.warning("the lock of %s is not refreshed: %s", self.title, type(error).__name__)

    def _ours(self, surely: bool = False) -> None:
        """Raises BackupProblem if somebody else has the lock; `surely` asks: before what makes a backup one, removes, or ends the lock."""
        if surely and self._claim:
            with self._guard, self._words():
                try:
                    self._lost = self._lost or obstore.head(self._store, LOCK)["e_tag"] != self._claim["e_tag"]
                except FileNotFoundError:
                    self._lost = True
        if self._lost:
            raise BackupProblem(
                f"Another process writes to {self.title} now, because this process seemed dead. Start the backup again."
            )

    def _again(self, work: Callable[[], T]) -> T:
        """Does it again after a pause if the store fails."""
        for turn in range(TRIES):
            try:
                with explain_full_disk(self.scratch):
                    return work()
            except (PermissionDeniedError, UnauthenticatedError) as error:
                raise self._said(error) from None
            except (BaseError, Damaged) as error:
                if turn + 1 == TRIES:
                    raise error if isinstance(error, Damaged) else self._said(error) from None
                time.sleep(PAUSE_S * 2**turn)
        raise AssertionError

    @contextmanager
    def _words(self) -> Iterator[None]:
        try:
            yield
        except BaseError as error:
            raise self._said(error) from None
        except FileNotFoundError:
            raise self._no_such() from None

    def _no_such(self) -> BackupProblem:
        return BackupProblem(buckets.no_such(self.title, self._by))

    def _said(self, error: BaseError) -> BackupProblem:
        return BackupProblem(buckets.error_text(error, self.title, self._by))


class _Download:
    """An object, read block by block, so that a broken connection costs only a block."""

    def __init__(self, bucket: Bucket, name: str, size: int) -> None:
        self._bucket, self._name, self._size = bucket, name, size
        self._at, self._left = 0, b""

    def read(self, size: int, /) -> bytes:
        parts, wanted = [self._left[:size]], size - len(self._left)
        self._left = self._left[size:]
        while wanted > 0 and self._at < self._size:
            block = self._bucket.block(self._name, self._at, min(self._size, self._at + BLOCK))
            self._at += len(block)
            parts.append(block[:wanted])
            self._left, wanted = block[wanted:], wanted - len(block)
        return b"".join(parts)


def _began(pid: int) -> int | None:
    """The start of a process of this machine, in ticks since the start of the machine, which do not depend on the clock. None: no such
    process."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None


def _holder(text: bytes) -> dict[str, Any]:
    """The holder that the lock names; a process elsewhere if it cannot be read."""
    try:
        told = json.loads(text)
        return {"host": str(told["host"]), "pid": int(told["pid"]), "began": told["began"]}
    except (ValueError, KeyError, TypeError):
        return {"host": "somebody", "pid": 0, "began": None}


def _version(claim: Any) -> Any:
    return {name: claim[name] for name in ("e_tag", "version") if claim.get(name)}
