"""How a process reaches what lies in object storage: by addresses that its server has signed, never by credentials.

A file lies there in pieces of PIECE_BYTES, the last one shorter, under names that its SHA-256 gives. What lists the files of a
folder is told last, so a folder that is known is whole.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from .base import Record
from .model_folder import MAX_FILE_BYTES, FileName, ModelFile

PIECE_BYTES = 64 << 20
"""Of one object: no storage takes 84 GB in one request, and what breaks off is begun again from here."""
MAX_FILES = 2000
MAX_PIECES = MAX_FILE_BYTES // PIECE_BYTES
"""Of all files of one request or artifact: each piece is an address to sign."""


def pieces(size: int) -> list[tuple[int, int]]:
    """Where each piece of a file of `size` bytes begins and ends; none for an empty file."""
    return [(start, min(size, start + PIECE_BYTES)) for start in range(0, size, PIECE_BYTES)]


def _few_enough(files: tuple[ModelFile, ...]) -> tuple[ModelFile, ...]:
    count = sum(-(-file.bytes // PIECE_BYTES) for file in files)
    if count > MAX_PIECES:
        raise ValueError(f"{count:,} pieces of {PIECE_BYTES:,} bytes; at most {MAX_PIECES:,} go into one artifact")
    return files


StoredFiles = Annotated[tuple[ModelFile, ...], Field(max_length=MAX_FILES), AfterValidator(_few_enough)]


class Upload(Record):
    """What a process asks for before it sends files: `path` is that of the artifact below the run's folder."""

    path: FileName
    files: StoredFiles = Field(min_length=1)


class FolderAsked(Record):
    """A folder by the name that the assignment gives it: a model's path, or an artifact of the run."""

    name: str = Field(min_length=1, max_length=1000)


class LinkedFile(ModelFile):
    """`urls`: one for each piece, for one method, for about an hour."""

    urls: tuple[str, ...]


class Links(Record):
    """`headers` go with each request that sends a piece."""

    files: tuple[LinkedFile, ...]
    headers: dict[str, str] = Field(default_factory=dict)
