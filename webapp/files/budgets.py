"""All limits on what is unpacked from a file that somebody sends are in this module.

A packed file says little about its size: 788 bytes of Parquet hold a row of 200 MB, and gzip packs a thousandfold. What
a file tells of itself is checked before anything is unpacked, and what comes out is counted while it comes.
"""

import gzip
import os
from typing import IO, BinaryIO

LINE = 8_000_000  # bytes of a row: a line of text, a record of CSV, a row of Parquet
COLUMNS = 4_096  # of a table
HEAD = 16_000_000  # bytes read of a file to tell its format
BESIDE = 64_000_000  # bytes of a file that is read whole beside another one
MEMBERS = 2_000  # files of a folder or an archive
OUT = 64_000_000_000  # bytes that come out of one file
RATIO, FREE = 200, 256_000_000  # unpacked bytes for one packed byte; as many as FREE may come out at any ratio
ROW_GROUP = 1_000_000_000  # bytes of a Parquet row group, as the file gives its size unpacked
BATCH = 16_000_000  # bytes of Parquet rows that are made Python's at a time


class TooMuch(Exception):
    """More comes out of a file than we take; the message is the end of a sentence for the person who sent it."""


def check(packed: int, out: int) -> None:
    """Raises TooMuch if `out` bytes come out of `packed` ones and that is beyond all measure."""
    if out > OUT:
        raise TooMuch(f"unpacks to more than {OUT // 10**9} GB; split it")
    if out > FREE and out > RATIO * packed:
        raise TooMuch(
            f"unpacks to more than {RATIO} times its size ({out // 10**6:,} MB so far); send it unpacked or split it"
        )


class BoundedGzip(gzip.GzipFile):
    """The unpacked pieces of `raw`. Raises TooMuch when they are more than we take."""

    def __init__(self, raw: BinaryIO | IO[bytes]) -> None:
        super().__init__(fileobj=raw, mode="rb")
        self._raw = raw

    def read1(self, size: int = -1) -> bytes:
        """Raises TooMuch."""
        data = super().read1(size)
        self.tell()
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Raises TooMuch, because seeking in packed data unpacks everything before it. `tell` calls this too."""
        place = super().seek(offset, whence)
        if place > FREE:
            check(self._raw.tell(), place)
        return place
