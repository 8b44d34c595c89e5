"""A folder of backups: contents by their SHA-256, each once, and one manifest for each backup, written last.

A content has its final name only when it is whole and on the disk, and a backup exists only when its manifest does. So a
backup that is killed leaves contents that the next one finds, and never half a backup.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import pyarrow as pa

from . import crypto
from .problems import BackupProblem, Damaged, WrongKey, room

BLOCK = 1 << 20
KEY = "key.json"
PLAIN = "plain.json"
PARTIAL = ".partial"
ENDING = ".manifest"


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def close(self) -> object: ...


@dataclass(frozen=True)
class Stored:
    """A content: its SHA-256 and bytes, and how many bytes it added to the folder (0: it was there already)."""

    digest: str
    size: int
    added: int


class Store:
    """`key` None: nothing is encrypted. All backups of a folder are of one kind."""

    def __init__(self, folder: Path, key: crypto.Key | None) -> None:
        self.folder, self.key = folder, key

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Holds the folder: one process writes to it or removes from it at a time. Raises BackupProblem.

        The lock ends with the process. What a killed one left unfinished is removed.
        """
        with (self.folder / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BackupProblem(f"Another backup is being made in {self.folder}.") from None
            for left in (*self.folder.glob(f"*{PARTIAL}"), *self.folder.glob(f"objects/*/*{PARTIAL}")):
                left.unlink(missing_ok=True)
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keeps others from writing and removing until the block ends. Raises BackupProblem while somebody does."""
        try:
            file = (self.folder / "lock").open()
        except OSError:  # a copy of the folder, or one that cannot be written to: then nobody writes
            yield
            return
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BackupProblem(f"A backup is being made in {self.folder}; try again when it is over.") from None
            yield

    def path(self, digest: str, packed: bool) -> Path:
        name = self.key.name(digest) if self.key else digest
        return self.folder / "objects" / name[:2] / (f"{name}.zst" if packed else name)

    def has(self, digest: str, packed: bool = False) -> bool:
        return self.path(digest, packed).is_file()

    def add(self, content: Iterator[bytes], packed: bool = False) -> Stored:
        """Keeps a content once. `packed`: compressed on its way. Raises BackupProblem where the disk is full."""
        (self.folder / "objects").mkdir(exist_ok=True, mode=0o700)
        partial = self.folder / f"{os.getpid()}-{id(content)}{PARTIAL}"
        digest, size = sha256(), 0
        try:
            with room(self.folder), partial.open("wb") as file:
                sink = self._sink(file, packed)
                for block in content:
                    digest.update(block)
                    size += len(block)
                    sink.write(block)
                sink.close()
                added = self._keep(file, partial, self.path(digest.hexdigest(), packed))
        finally:
            partial.unlink(missing_ok=True)
        return Stored(digest.hexdigest(), size, added)

    def read(self, digest: str, packed: bool = False) -> Iterator[bytes]:
        """A content, checked against its digest at the end. Raises Damaged."""
        found = sha256()
        for block in self._blocks(self.path(digest, packed), packed):
            found.update(block)
            yield block
        if found.hexdigest() != digest:
            raise Damaged(f"A file of the backup is not what was written: its digest is not {digest}.")

    def write_manifest(self, name: str, content: bytes) -> Path:
        """Makes a backup one. Everything it names is on the disk by now."""
        path = self.folder / f"{name}{ENDING}"
        partial = path.with_name(path.name + PARTIAL)
        head = json.dumps({"sha256": sha256(content).hexdigest()}).encode() + b"\n"
        with room(self.folder), partial.open("wb") as file:
            sink = self._sink(file, packed=True)
            sink.write(head + content)
            sink.close()
            self._keep(file, partial, path)
        return path

    def read_manifest(self, path: Path) -> bytes:
        """Raises Damaged."""
        head, _, content = b"".join(self._blocks(path, packed=True)).partition(b"\n")
        try:
            said = json.loads(head)["sha256"]
        except (ValueError, KeyError, TypeError):
            raise Damaged(f"{path} is not the manifest of a backup.") from None
        if sha256(content).hexdigest() != said:
            raise Damaged(f"{path} is not what was written.")
        return content

    def names(self) -> list[str]:
        """The backups that are whole, oldest first."""
        return sorted(path.name.removesuffix(ENDING) for path in self.folder.glob(f"*{ENDING}"))

    def manifest_path(self, name: str) -> Path:
        return self.folder / f"{name}{ENDING}"

    def contents(self) -> Iterator[Path]:
        return self.folder.glob("objects/*/*")

    def _sink(self, file: BinaryIO, packed: bool) -> Sink:
        sealed: Sink = crypto.Sealing(file, self.key) if self.key else _Open(file)
        return _Packed(sealed) if packed else sealed

    def _keep(self, file: BinaryIO, partial: Path, final: Path) -> int:
        """Gives a whole file its name; the bytes that it added."""
        size = file.tell()
        file.flush()
        if final.suffix != ENDING and final.is_file():
            return 0
        os.fsync(file.fileno())
        final.parent.mkdir(exist_ok=True, mode=0o700)
        partial.replace(final)
        _flush(final.parent)
        return size

    def _blocks(self, path: Path, packed: bool) -> Iterator[bytes]:
        try:
            file = path.open("rb")
        except FileNotFoundError:
            raise Damaged(f"A file of the backup is missing: {path}.") from None
        with file:
            blocks = crypto.unseal(file, self.key) if self.key else iter(lambda: file.read(BLOCK), b"")
            yield from _unpacked(blocks) if packed else blocks


class _Open:
    """Nothing between the writer and the file."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write

    def close(self) -> None:
        """Whoever opened the file closes it."""


class _Packed:
    """Compresses what goes to `inner`."""

    def __init__(self, inner: Sink) -> None:
        self._inner = inner
        self._stream = pa.CompressedOutputStream(pa.PythonFile(_Writable(inner), "w"), "zstd")

    def write(self, data: bytes) -> None:
        self._stream.write(data)

    def close(self) -> None:
        self._stream.close()
        self._inner.close()


class _Writable:
    """A sink as the library wants files: it would close the file when it is done, and asks whether it is."""

    closed = False

    def __init__(self, inner: Sink) -> None:
        self._inner = inner

    def write(self, data: bytes) -> int:
        self._inner.write(bytes(data))
        return len(data)

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True


class _Readable:
    """Blocks as the library wants files."""

    closed = False

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = blocks, b""

    def read(self, size: int = -1) -> bytes:
        while len(self._left) < size and (block := next(self._blocks, b"")):
            self._left += block
        found, self._left = self._left[:size], self._left[size:]
        return found

    def close(self) -> None:
        self.closed = True


def _unpacked(blocks: Iterator[bytes]) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.PythonFile(_Readable(blocks), "r"), "zstd")
    try:
        while block := stream.read(BLOCK):
            yield cast(bytes, block)
    except OSError as error:
        raise Damaged(f"A file of the backup is not what was written: it cannot be unpacked ({error}).") from error


def _flush(folder: Path) -> None:
    """A new name outlasts a power cut only when its folder was written too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_store(folder: Path, passphrase: bytes | None, *, create: bool = False) -> Store:
    """The backups in `folder`. Raises WrongKey, or BackupProblem where there is no such folder."""
    if create:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (folder / KEY).exists() and not (folder / PLAIN).exists():
            return Store(folder, _begin(folder, passphrase))
    if (folder / KEY).is_file():
        if passphrase is None:
            raise WrongKey(f"The backups in {folder} are encrypted: name the key file they were made with.")
        return Store(folder, crypto.known(passphrase, (folder / KEY).read_text()))
    if not (folder / PLAIN).is_file():
        raise BackupProblem(f"There are no backups in {folder}.")
    if passphrase is not None:
        raise WrongKey(f"The backups in {folder} are not encrypted: leave the key away, or name another folder.")
    return Store(folder, None)


def _begin(folder: Path, passphrase: bytes | None) -> crypto.Key | None:
    """Says once and for all whether the backups of this folder are encrypted."""
    if others := [path.name for path in folder.iterdir() if path.name != "lock"]:
        raise BackupProblem(f"{folder} is no folder of backups, and it is not empty: {others[0]} lies in it.")
    key, kept = crypto.new(passphrase) if passphrase is not None else (None, json.dumps({"encrypted": False}))
    path = folder / (KEY if key else PLAIN)
    partial = path.with_name(path.name + PARTIAL)
    with room(folder), partial.open("w") as file:
        file.write(kept)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    _flush(folder)
    return key


def passphrase_of(file: Path | None) -> bytes | None:
    """What a key file holds, without the line break at its end. Raises WrongKey where it is too short or cannot be read."""
    if file is None:
        return None
    try:
        found = file.read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise WrongKey(f"The key file {file} cannot be read: {error.strerror}.") from error
    if len(found) < 12:
        raise WrongKey(f"The key file {file} is too short: a passphrase has at least 12 characters.")
    return found
