"""Members of zip archives that are packed with Zstandard, which the standard library of Python does not unpack before 3.14."""

import io
import zipfile
import zlib
from copy import copy
from typing import Any

METHOD = 93  # in the directory of an archive


class ZstdMember(io.RawIOBase):
    """The unpacked pieces of one member, until they are more than the archive's directory says. It is read from its start on; `seek`
    goes back there, or to where it is."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self._archive, self._info = archive, info
        self._begin()

    def _begin(self) -> None:
        import pyarrow as pa

        packed = copy(self._info)
        packed.compress_type, packed.file_size = zipfile.ZIP_STORED, packed.compress_size
        del packed.CRC  # it is that of what comes out
        self._packed = self._archive.open(packed)
        self._stream: Any = pa.CompressedInputStream(pa.PythonFile(self._packed, mode="r"), "zstd")
        self._place = self._crc = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Raises UnsupportedOperation for any other place."""
        if whence == io.SEEK_SET and offset == 0:
            self._packed.close()
            self._begin()
        elif (whence, offset) not in ((io.SEEK_SET, self._place), (io.SEEK_CUR, 0)):
            raise io.UnsupportedOperation("this member is read from its start on")
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Raises BadZipFile, EOFError if it is damaged or holds more than the directory says."""
        if not len(buffer):
            return 0
        try:
            data = self._stream.read(len(buffer))
        except (ValueError, OSError) as error:
            raise zipfile.BadZipFile(f"{self._info.filename}: {error}") from error
        self._place += len(data)
        self._crc = zlib.crc32(data, self._crc)
        if self._place > self._info.file_size:
            raise zipfile.BadZipFile(f"{self._info.filename} holds more than the directory of the archive says")
        if not data:
            self._check_end()
        buffer[: len(data)] = data
        return len(data)

    def read1(self, size: int = -1) -> bytes:
        return self.read(size) or b""

    def _check_end(self) -> None:
        if self._place < self._info.file_size:
            raise EOFError(f"{self._info.filename} ends before its end")
        if self._crc != self._info.CRC:
            raise zipfile.BadZipFile(f"{self._info.filename} is not what was packed: its checksum is another")

    def close(self) -> None:
        self._packed.close()
        super().close()
