"""What is given to an import: one file, or a folder or zip archive of files that belong together."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from .base import Head, Row
from .rows import rows
from .source import UNPACKING_ERRORS, Progress, opened, unpacked

HEAD_ROWS = 20
MAX_BESIDE_BYTES = 64_000_000  # a file read whole beside another one
MAX_FILES = 2_000
ENCRYPTED = 1  # a flag of the format
IGNORED = ("readme", "license", "licence")


class Bundle:
    """`names` are the files in order; for a single file, itself. Raises OSError, also for a broken archive."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path
        self._name = name or path.name
        self._zip = self._archive()
        self.names = self._names()

    def _archive(self) -> zipfile.ZipFile | None:
        if self.path.is_dir() or not zipfile.is_zipfile(self.path):
            return None
        try:
            return zipfile.ZipFile(self.path)
        except zipfile.BadZipFile as error:
            raise OSError(f"the archive is damaged: {error}") from error

    def _names(self) -> tuple[str, ...]:
        if self._zip:
            infos = [info for info in self._zip.infolist() if not info.is_dir()]
            if any(info.flag_bits & ENCRYPTED for info in infos):
                raise OSError("the archive is encrypted")
            found = [info.filename for info in infos]
        elif self.path.is_dir():
            found = [file.relative_to(self.path).as_posix() for file in self.path.rglob("*") if file.is_file()]
        else:
            return (self._name,)
        kept = sorted(name for name in found if not _ignored(PurePosixPath(name)))
        return tuple(kept[:MAX_FILES])

    @property
    def is_single(self) -> bool:
        return not self._zip and not self.path.is_dir()

    @cached_property
    def size(self) -> int:
        """Bytes to be read, as `Progress` counts them."""
        if self._zip:
            return sum(self._zip.getinfo(name).file_size for name in self.names)
        return self.path.stat().st_size if self.is_single else sum((self.path / n).stat().st_size for n in self.names)

    @property
    def changed(self) -> int:
        """When a file of it was last written, in nanoseconds."""
        files = [self.path / name for name in self.names] if self.path.is_dir() else [self.path]
        return max((file.stat().st_mtime_ns for file in files), default=0)

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[BinaryIO, Progress]]:
        """The content of one file, unpacked if it is gzipped, and its progress. Raises OSError."""
        if self._zip:
            try:
                raw = self._zip.open(name)
                stream = unpacked(raw)
            except (*UNPACKING_ERRORS, NotImplementedError) as error:
                raise OSError(f"{name} in the archive cannot be unpacked: {error}") from error
            with raw:
                yield stream, Progress(raw, stream)
        else:
            with opened(self.path if self.is_single else self.path / name) as both:
                yield both

    def head(self, name: str) -> Head:
        """The first rows of the file that can be read. Raises OSError."""
        found: list[Row] = []
        with self.opened(name) as (stream, _):
            for index, (_, row) in enumerate(rows(stream, name)):
                if isinstance(row, dict):
                    found.append(row)
                if index + 1 >= HEAD_ROWS:
                    break
        return Head(name, tuple(found))

    def beside(self, name: str) -> "Neighbours":
        return Neighbours(self, name)


def _ignored(name: PurePosixPath) -> bool:
    return name.name.startswith((".", "__MACOSX")) or name.stem.lower() in IGNORED or "__MACOSX" in name.parts


class Neighbours:
    """`base.Beside` for a file of a bundle. A single file's neighbours are the files of its folder: an upload has none."""

    def __init__(self, bundle: Bundle, name: str) -> None:
        self.name = name
        self.together = not bundle.is_single
        self._bundle = bundle

    def rows(self, name: str) -> Iterator[Row]:
        if self._bundle.is_single:
            path = self._bundle.path.parent / name
            if path.is_file() and path.stat().st_size <= MAX_BESIDE_BYTES:
                with opened(path) as (stream, _):
                    yield from _good(stream, name)
            return
        wanted = PurePosixPath(self.name).with_name(name).as_posix()
        if wanted in self._bundle.names:
            with self._bundle.opened(wanted) as (stream, _):
                yield from _good(stream, name)


def _good(stream: BinaryIO, name: str) -> Iterator[Row]:
    return (row for _, row in rows(stream, name) if isinstance(row, dict))
