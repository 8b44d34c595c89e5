"""Uploaded files, which are kept under var/uploads until their import is over."""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from pathlib import Path
from shutil import rmtree
from typing import Protocol
from uuid import uuid4

from django.conf import settings

from webapp.core.problems import Invalid

MAX_UPLOAD_BYTES = 4_000_000_000
CHUNK = 1 << 20


class SupportsRead(Protocol):
    def read(self, size: int, /) -> bytes: ...


def new_path(file_name: str) -> Path:
    """The path for a file of this name until its import is over. There is no file yet."""
    return Path(settings.VAR) / "uploads" / uuid4().hex / safe_name(file_name)


def store_upload(file_name: str, chunks: SupportsRead) -> Path:
    """Keeps an uploaded file under var/uploads until its import is over. Raises Invalid at `file` if it is too large or the disk is full;
    then nothing of it is kept."""
    path = new_path(file_name)
    try:
        path.parent.mkdir(parents=True)
        _write(path, chunks)
    except BaseException as error:
        discard_upload(path)
        if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
            reason = "cannot be stored: the server's disk is full. Free some space, then send it again"
            raise Invalid("The server's disk is full.", {"file": reason}) from error
        raise
    return path


@contextmanager
def uploaded(file_name: str, chunks: SupportsRead) -> Iterator[Path]:
    """`store_upload` for a block that starts the import. If the block fails for any reason, nothing of the file is kept."""
    path = store_upload(file_name, chunks)
    try:
        yield path
    except BaseException:
        discard_upload(path)
        raise


def _write(path: Path, chunks: SupportsRead) -> None:
    size = 0
    with path.open("wb") as file:
        while chunk := chunks.read(CHUNK):
            size += len(chunk)
            if size > MAX_UPLOAD_BYTES:
                raise Invalid("The file is too large.", {"file": f"is larger than {MAX_UPLOAD_BYTES // 10**9} GB"})
            file.write(chunk)


def safe_name(name: str) -> str:
    """The last part of the name, never a path out of its folder. Readers need its ending."""
    cleaned = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in Path(name).name)
    return cleaned.lstrip(".")[-100:].encode("ascii", "replace").decode().replace("?", "_") or "upload"


def discard_upload(path: Path) -> None:
    """Removes an upload and its folder. A file elsewhere, such as one that was named on the command line, stays."""
    if path.parent.parent == Path(settings.VAR) / "uploads":
        rmtree(path.parent, ignore_errors=True)
