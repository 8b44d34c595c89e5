"""Files as bytes: opened, unpacked where gzipped, cut into bounded lines, with the progress known."""

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from . import budgets
from .records import RowProblem

GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
UNPACKING_ERRORS = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile)


def unpacking(error: Exception) -> bool:
    """Whether it says that what is packed is damaged. Of bzip2 that is an OSError like those of a disk, but without number."""
    return isinstance(error, UNPACKING_ERRORS) or (isinstance(error, OSError) and error.errno is None)


class ReadProgress:
    """The position in the file on disk, compressed bytes for a gzipped one, and how many bytes came out of it."""

    def __init__(self, raw: BinaryIO | IO[bytes], stream: BinaryIO) -> None:
        self._raw, self._stream = raw, stream

    @property
    def bytes_done(self) -> int:
        return self._raw.tell()

    @property
    def bytes_out(self) -> int:
        return self._stream.tell()


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, ReadProgress]]:
    """The content of `path`, unpacked if it is gzipped under any name, and its progress. Raises OSError."""
    with path.open("rb") as raw:
        stream = unpacked(raw)
        yield stream, ReadProgress(raw, stream)


def unpacked(raw: BinaryIO | IO[bytes]) -> BinaryIO:
    """The stream from its start, read through gzip if it is packed."""
    packed = raw.read(2) == GZIP_MAGIC
    raw.seek(0)
    return budgets.BoundedGzip(raw) if packed else raw  # type: ignore[return-value]


def bounded_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | RowProblem]]:
    """Every line that is not blank, without its end; a line beyond the bound is skipped and reported."""
    number = 0
    while line := stream.readline(budgets.LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BOM)
        if len(line) > budgets.LINE:
            _skip_line(stream, line)
            yield number, RowProblem(number, "", f"the line is longer than {budgets.LINE // 10**6} MB")
        elif stripped := line.strip():
            yield number, stripped


def _skip_line(stream: BinaryIO, part: bytes) -> None:
    while part and not part.endswith(b"\n"):
        part = stream.readline(1_000_000)
