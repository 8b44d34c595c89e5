"""The input of an import: one file, or a folder or zip archive of files that belong together."""

import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from . import budgets
from .members import Members, together
from .records import FileHead, Row
from .rows import PARQUET_MAGIC, rows
from .source import GZIP_MAGIC, UNPACKING_ERRORS, ReadProgress, opened, unpacked
from .zstd import METHOD, ZstdMember

HEAD_ROWS = 20
ENCRYPTED = 1  # a flag of the format
IGNORED = ("readme", "license", "licence")


class Bundle:
    """`names` are the files in order; for a single file, itself. In a log of inspect, the folder of its samples counts as one file. Raises
    OSError, also for a broken archive."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path
        self._name = name or path.name
        self._zip = self._archive()
        self._together: dict[str, tuple[str, ...]] = {}
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
            _check(infos, self.path.stat().st_size)
            found = [info.filename for info in infos]
            self._together = together(found)
            inside = {name for names in self._together.values() for name in names}
            found = [name for name in found if name not in inside] + [*self._together]
        elif self.path.is_dir():
            found = [file.relative_to(self.path).as_posix() for file in self.path.rglob("*") if file.is_file()]
        else:
            return (self._name,)
        kept = sorted(name for name in found if not _ignored(PurePosixPath(name)))
        if len(kept) > budgets.MEMBERS:
            raise OSError(f"holds {len(kept):,} files; at most {budgets.MEMBERS:,} are imported together")
        return tuple(kept)

    @property
    def is_single(self) -> bool:
        return not self._zip and not self.path.is_dir()

    @property
    def is_packed(self) -> bool:
        """Whether more may come out of it than lies there."""
        if not self.is_single:
            return bool(self._zip) or any(map(_packed, (self.path / name for name in self.names)))
        return _packed(self.path)

    @cached_property
    def size(self) -> int:
        """Bytes to be read, as `ReadProgress` counts them."""
        return sum(map(self.size_of, self.names))

    def size_of(self, name: str) -> int:
        """Bytes of one of the files, as it lies there; of a packed archive's, unpacked."""
        if self._zip:
            return sum(self._zip.getinfo(each).file_size for each in self._together.get(name, (name,)))
        return (self.path if self.is_single else self.path / name).stat().st_size

    @property
    def changed(self) -> int:
        """The time at which a file of it was last written, in nanoseconds."""
        files = [self.path / name for name in self.names] if self.path.is_dir() else [self.path]
        return max((file.stat().st_mtime_ns for file in files), default=0)

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[BinaryIO, ReadProgress]]:
        """The content of one file, unpacked if it is gzipped, and its progress. Raises OSError."""
        if name in self._together:
            members: Any = Members(self._member, self._together[name])
            yield members, ReadProgress(members, members)
        elif self._zip:
            try:
                raw = self._member(name)
                stream = unpacked(raw)
            except (*UNPACKING_ERRORS, NotImplementedError) as error:
                raise OSError(f"{name} in the archive cannot be unpacked: {error}") from error
            with raw:
                yield stream, ReadProgress(raw, stream)
        else:
            with opened(self.path if self.is_single else self.path / name) as both:
                yield both

    def _member(self, name: str) -> IO[bytes]:
        if self._zip is None:
            raise TypeError(f"{self.path} is not an archive")
        info = self._zip.getinfo(name)
        return ZstdMember(self._zip, info) if info.compress_type == METHOD else self._zip.open(info)  # type: ignore[return-value]

    def head(self, name: str) -> FileHead:
        """The first rows of the file that can be read. Raises OSError."""
        found: list[Row] = []
        with self.opened(name) as (stream, progress):
            for index, (_, row) in enumerate(rows(stream, name)):
                if isinstance(row, dict):
                    found.append(row)
                if index + 1 >= HEAD_ROWS or progress.bytes_out > budgets.HEAD:
                    break
        return FileHead(name, tuple(found))

    def beside(self, name: str) -> "Neighbours":
        return Neighbours(self, name)


def _packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4).startswith((GZIP_MAGIC, PARQUET_MAGIC))


def _check(infos: list[zipfile.ZipInfo], packed: int) -> None:
    """Raises OSError for an archive that unpacks to too much. What its directory says is a bound: no more is unpacked."""
    try:
        budgets.check(packed, sum(info.file_size for info in infos))
    except budgets.TooMuch as error:
        raise OSError(f"the archive {error}") from error


def _ignored(name: PurePosixPath) -> bool:
    return name.name.startswith((".", "__MACOSX")) or name.stem.lower() in IGNORED or "__MACOSX" in name.parts


class Neighbours:
    """`base.Beside` for a file of a bundle. A single file's neighbours are the files of its folder: an upload has none."""

    def __init__(self, bundle: Bundle, name: str) -> None:
        self.name = name
        self.together = not bundle.is_single
        self._bundle = bundle

    @property
    def names(self) -> tuple[str, ...]:
        if self._bundle.is_single:
            return ()
        folder = PurePosixPath(self.name).parent
        others = [PurePosixPath(name) for name in self._bundle.names if name != self.name]
        return tuple(each.name for each in others if each.parent == folder)

    def rows(self, name: str) -> Iterator[Row]:
        if self._bundle.is_single:
            if "/" in name:  # a single file has no folder above
                return
            path = self._bundle.path.parent / name
            if path.is_file() and path.stat().st_size <= budgets.BESIDE:
                with opened(path) as (stream, _):
                    yield from _good(stream, name)
            return
        wanted = posixpath.normpath(PurePosixPath(self.name).parent.joinpath(name).as_posix())
        if wanted in self._bundle.names and self._bundle.size_of(wanted) <= budgets.BESIDE:
            with self._bundle.opened(wanted) as (stream, _):
                yield from _good(stream, name)


def _good(stream: BinaryIO, name: str) -> Iterator[Row]:
    return (row for _, row in rows(stream, name) if isinstance(row, dict))
