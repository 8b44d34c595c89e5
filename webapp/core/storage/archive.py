"""A folder as an uncompressed tar that is never stored: any range of it can be read, so a download resumes where it broke.

The bytes follow from the names and contents of the files alone (no times, no owners), so two downloads are equal.
"""

import hashlib
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from ..problems import Problem

PIECE = 1 << 20  # bytes read at a time
BLOCK = tarfile.BLOCKSIZE
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Gone(Problem):
    """The files no longer exist (410)."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="gone", status=410)


@dataclass(frozen=True)
class ArchiveStretch:
    """`length` bytes at `start` of what is sent: `content`, those of the file `path`, or what `source` gives for the first and the
    last of them; zeros if it is none of these."""

    start: int
    length: int
    content: bytes | None = None
    path: Path | None = None
    source: Callable[[int, int], Iterator[bytes]] | None = None

    def read(self, first: int, last: int) -> Iterator[bytes]:
        """The bytes `first <= i < last`, counted from the start of the response. Raises Gone if the file has shrunk."""
        first, last = max(first, self.start) - self.start, min(last, self.start + self.length) - self.start
        if self.source is not None:
            yield from self.source(first, last)
            return
        if self.path is None:
            yield (self.content or bytes(self.length))[first:last]
            return
        with self.path.open("rb") as file:
            file.seek(first)
            while first < last:
                piece = file.read(min(PIECE, last - first))
                if not piece:
                    raise Gone(f"{self.path.name} became shorter while it was sent")
                first += len(piece)
                yield piece


@dataclass(frozen=True)
class Download:
    """The download: `length` bytes under `name`. `tag` changes whenever the bytes may have changed."""

    name: str
    length: int
    tag: str
    stretches: tuple[ArchiveStretch, ...]
    content_type: str = "application/x-tar"

    def read(self, first: int, last: int) -> Iterator[bytes]:
        for stretch in self._within(first, last):
            yield from stretch.read(first, last)

    def begun(self, first: int, last: int) -> Iterator[bytes]:
        """Like `read`, but reads the first block of a file before anything is sent, so that an unreadable file is reported by the
        response's status. Raises what reading it raises."""
        ahead, left = list[bytes](), iter(self._within(first, last))
        for stretch in left:
            blocks = stretch.read(first, last)
            ahead.append(next(blocks))
            if stretch.path is not None or stretch.source is not None:
                return chain(ahead, blocks, (block for later in left for block in later.read(first, last)))
        return iter(ahead)

    def _within(self, first: int, last: int) -> list[ArchiveStretch]:
        return [each for each in self.stretches if each.start < last and each.start + each.length > first]


def of_path(path: Path, name: str) -> Download:
    """A folder as `<name>.tar`, a file as it is. Raises Gone if neither is there."""
    if path.is_dir() and not path.is_symlink():
        return of_folder(path, name)
    return of_file(path, name + "".join(path.suffixes[-1:]))


def of_file(path: Path, name: str) -> Download:
    """Raises Gone."""
    if path.is_symlink() or not path.is_file():
        raise Gone(f"The file {path.name} is not there any more.")
    facts = path.stat()
    tag = hashlib.sha256(f"{facts.st_size} {facts.st_mtime_ns}".encode()).hexdigest()[:32]
    whole = ArchiveStretch(0, facts.st_size, path=path)
    return Download(name, facts.st_size, tag, (whole,), "application/octet-stream")


def of_folder(folder: Path, name: str) -> Download:
    """All regular files below the folder, in a folder `name` of the archive; links are left out. Raises Gone."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not _linked(path, folder)]
    if not files:
        raise Gone(f"The folder {folder.name} is not there any more.")
    entries, told = list[ArchiveFile](), hashlib.sha256()
    for path in files:
        facts = path.stat()
        entries.append(ArchiveFile(path.relative_to(folder).as_posix(), facts.st_size, path=path))
        told.update(f"{facts.st_mtime_ns}".encode())
    return of_entries(entries, name, told.hexdigest())


@dataclass(frozen=True)
class ArchiveFile:
    """A file of an archive, as `ArchiveStretch` reads it."""

    name: str
    size: int
    path: Path | None = None
    source: Callable[[int, int], Iterator[bytes]] | None = None


def of_entries(entries: Sequence[ArchiveFile], name: str, mark: str) -> Download:
    """A tar of these files, in a folder `name`. `mark` changes when the content of one may have changed."""
    stretches: list[ArchiveStretch] = []
    at, told = 0, hashlib.sha256(mark.encode())
    for entry in entries:
        info = tarfile.TarInfo(f"{name}/{entry.name}")
        info.size, info.mode = entry.size, 0o644
        header = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
        whole = ArchiveStretch(at + len(header), entry.size, path=entry.path, source=entry.source)
        stretches += [ArchiveStretch(at, len(header), header), whole]
        at += len(header) + entry.size
        padding = -entry.size % BLOCK
        stretches.append(ArchiveStretch(at, padding))
        at += padding
        told.update(header)
    stretches.append(ArchiveStretch(at, 2 * BLOCK))  # two empty blocks end an archive
    kept = tuple(stretch for stretch in stretches if stretch.length)
    return Download(f"{name}.tar", at + 2 * BLOCK, told.hexdigest()[:32], kept)


def _linked(path: Path, folder: Path) -> bool:
    return path.is_symlink() or not path.resolve().is_relative_to(folder.resolve())


def respond(request: HttpRequest, download: Download) -> HttpResponseBase:
    """Sends the whole, or the requested range (RFC 9110, section 14); several ranges get the whole.

    Raises what reading the first of it raises: Gone, or what the storage says that it lies in.
    """
    tag = f'"{download.tag}"'
    first, last = 0, download.length
    asked = RANGE.fullmatch(request.headers.get("Range", "").strip())
    if asked and request.headers.get("If-Range", tag) == tag and (asked[1] or asked[2]):
        first, last = _bounds(asked[1], asked[2], download.length)
        if first >= last:
            refused = HttpResponse(status=416)
            refused["Content-Range"] = f"bytes */{download.length}"
            return refused
        response = StreamingHttpResponse(download.begun(first, last), status=206, content_type=download.content_type)
        response["Content-Range"] = f"bytes {first}-{last - 1}/{download.length}"
    else:
        response = StreamingHttpResponse(download.begun(first, last), content_type=download.content_type)
    response["Content-Length"] = str(last - first)
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = tag
    response["Cache-Control"] = "private, no-cache"
    response["Content-Disposition"] = f'attachment; filename="{ascii_name(download.name)}"'
    return response


def _bounds(first: str, last: str, length: int) -> tuple[int, int]:
    if not first:
        return max(0, length - int(last)), length if int(last) else 0
    return int(first), min(length, int(last) + 1 if last else length)


def ascii_name(name: str) -> str:
    """A file name that every header and file system takes."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "model"
