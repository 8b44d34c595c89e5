"""Files on the disk: the digest of what they hold, and how they survive a power cut."""

import hashlib
import os
from pathlib import Path


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content, hexadecimal. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def flush(path: Path) -> None:
    """Write a file or a folder through to the disk. A new name survives a power cut only if its folder was flushed too. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
