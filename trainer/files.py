"""A file as it lies on the disk: what it holds, by a digest, and that it is still there after a power cut."""

import hashlib
import os
from pathlib import Path


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content, hexadecimal. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def flush(path: Path) -> None:
    """A file or a folder to the disk. A new name outlasts a power cut only when its folder was flushed too. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
