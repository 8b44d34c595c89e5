"""A place of backups: contents by their SHA-256, each once, and one manifest for each backup, written last.

A content has its name only when it is whole and on the disk, and a backup exists only when its manifest does. So a killed backup leaves
contents that the next one finds, and never half a backup.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import pyarrow as pa

from . import addresses, crypto
from .places import PARTIAL, BackupPlace
from .problems import BackupProblem, Damaged, WrongKey, explain_full_disk

BLOCK = 1 << 20
KEY = "key.json"
PLAIN = "plain.json"
ENDING = ".manifest"
OBJECTS = "objects"


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def close(self) -> object: ...


@dataclass(frozen=True)
class StoredContent:
    """A content: its SHA-256 and bytes, and how many bytes it added to the place (0: it was there already)."""

    digest: str
    size: int
    added: int


class ContentStore:
    """`key` None: nothing is encrypted. All backups of a place are of one kind."""

    def __init__(self, place: BackupPlace, key: crypto.BackupKey | None) -> None:
        self.place, self.key = place, key
        self.alone, self.reading, self.removing = place.writing, place.reading, place.removing

    def content_name(self, digest: str, packed: bool = False) -> str:
        """The name of a content."""
        name = self.key.name(digest) if self.key else digest
        return f"{OBJECTS}/{name[:2]}/{name}{'.zst' if packed else ''}"

    def has(self, digest: str, packed: bool = False) -> bool:
        return self.place.has(self.content_name(digest, packed))

    def add(self, content: Iterable[bytes], packed: bool = False) -> StoredContent:
        """Keeps a content once. `packed`: compressed on its way. Raises BackupProblem if there is no room for it."""
        digest, size = sha256(), 0

        def hashed() -> Iterator[bytes]:
            nonlocal size
            for block in content:
                digest.update(block)
                size += len(block)
                yield block

        partial = self._written(hashed(), packed)
        try:
            name = self.content_name(digest.hexdigest(), packed)
            added = 0 if self.place.has(name) else partial.stat().st_size
            if added:
                self.place.keep(partial, name)
        finally:
            partial.unlink(missing_ok=True)
        return StoredContent(digest.hexdigest(), size, added)

    def read(self, digest: str, packed: bool = False, checked: bool = True) -> Iterator[bytes]:
        """A content, checked against its digest at the end, unless the reader checks it. Raises Damaged."""
        found = sha256()
        for block in self._blocks(self.content_name(digest, packed), packed):
            if checked:
                found.update(block)
            yield block
        if checked and found.hexdigest() != digest:
            raise Damaged(f"A file of the backup is not what was written: its digest is not {digest}.")

    def write_manifest(self, name: str, content: bytes) -> None:
        """Writes the manifest, which completes a backup. All contents that it names exist by then."""
        head = json.dumps({"sha256": sha256(content).hexdigest()}).encode() + b"\n"
        partial = self._written([head + content], packed=True)
        try:
            self.place.keep(partial, name + ENDING)
        finally:
            partial.unlink(missing_ok=True)

    def read_manifest(self, name: str) -> bytes:
        """Raises Damaged."""
        head, _, content = b"".join(self._blocks(name + ENDING, packed=True)).partition(b"\n")
        try:
            said = json.loads(head)["sha256"]
        except (ValueError, KeyError, TypeError):
            raise Damaged(f"{name} is not the manifest of a backup.") from None
        if sha256(content).hexdigest() != said:
            raise Damaged(f"The manifest of {name} is not what was written.")
        return content

    def names(self) -> list[str]:
        """The complete backups, oldest first."""
        return sorted(name.removesuffix(ENDING) for name in self.place.names() if name.endswith(ENDING))

    def contents(self) -> Iterator[str]:
        """The names of all contents."""
        return self.place.names(OBJECTS)

    def forget(self, names: Iterable[str]) -> None:
        """Removes the manifests of these backups; their contents stay."""
        self.place.remove([name + ENDING for name in names])

    def _written(self, blocks: Iterable[bytes], packed: bool) -> Path:
        """Writes the blocks to a file of the scratch folder, as they are stored."""
        partial = self.place.scratch / f"{os.getpid()}-{id(blocks)}{PARTIAL}"
        try:
            with explain_full_disk(partial.parent), partial.open("wb") as file:
                sink = self._sink(file, packed)
                for block in blocks:
                    sink.write(block)
                sink.close()
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        return partial

    def _sink(self, file: BinaryIO, packed: bool) -> Sink:
        sealed: Sink = crypto.Sealing(file, self.key) if self.key else _PlainFile(file)
        return _Packed(sealed) if packed else sealed

    def _blocks(self, name: str, packed: bool) -> Iterator[bytes]:
        with self.place.read(name) as file:
            blocks = crypto.unseal(file, self.key) if self.key else iter(lambda: file.read(BLOCK), b"")
            yield from _unpacked(blocks) if packed else blocks


class _PlainFile:
    """A file without compression or encryption."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write

    def close(self) -> None:
        """Does nothing: the file is closed by the code that opened it."""


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
    """A sink with the methods that the library needs: it would close the file at the end, and asks whether it is closed."""

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
    """Blocks as a file for the library."""

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


def open_store(where: Path | str, passphrase: bytes | None, *, create: bool = False) -> ContentStore:
    """The backups in a folder or a bucket. Raises WrongKey, or BackupProblem if there are none."""
    place = addresses.parse_address(where)
    encrypted, plain = place.has(KEY), place.has(PLAIN)
    if create and not encrypted and not plain:
        _begin(place, passphrase)
        encrypted, plain = place.has(KEY), place.has(PLAIN)
    if encrypted:
        if passphrase is None:
            raise WrongKey(f"The backups in {place.title} are encrypted: name the key file they were made with.")
        with place.read(KEY) as file:
            return ContentStore(place, crypto.unlock_key(passphrase, file.read(BLOCK).decode()))
    if not plain:
        raise BackupProblem(f"There are no backups in {place.title}.")
    if passphrase is not None:
        raise WrongKey(f"The backups in {place.title} are not encrypted: leave the key out, or name another folder.")
    return ContentStore(place, None)


def _begin(place: BackupPlace, passphrase: bytes | None) -> None:
    """Decides once whether the backups of this place are encrypted."""
    place.begin()
    kept = crypto.new(passphrase)[1] if passphrase is not None else json.dumps({"encrypted": False})
    with place.writing():
        if place.has(KEY) or place.has(PLAIN):  # another process was faster
            return
        partial = place.scratch / f"{os.getpid()}{PARTIAL}"
        with explain_full_disk(place.scratch):
            partial.write_text(kept)
        place.keep(partial, PLAIN if passphrase is None else KEY)


def passphrase_of(file: Path | None) -> bytes | None:
    """The content of a key file, without the line break at its end. Raises WrongKey if it is too short or cannot be read."""
    if file is None:
        return None
    try:
        found = file.read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise WrongKey(f"The key file {file} cannot be read: {error.strerror}.") from error
    if len(found) < 12:
        raise WrongKey(f"The key file {file} is too short: a passphrase has at least 12 characters.")
    return found
