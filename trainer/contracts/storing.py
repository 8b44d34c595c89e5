"""A process reaches files in object storage by addresses that its server has signed, never by credentials.

A file lies there in pieces of PIECE_BYTES (the last may be shorter), under names made of its SHA-256. The list of a folder's files is
reported last, so a folder that has a list is whole.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from .base import Record
from .model_folder import MAX_FILE_BYTES, FileName, ModelFile

PIECE_BYTES = 64 << 20
"""The size of one object. No storage takes 84 GB in one request; after a break, only the piece is sent again."""
MAX_FILES = 2000
MAX_PIECES = MAX_FILE_BYTES // PIECE_BYTES
"""For all files of one request or artifact together: the server signs an address for each piece."""


def pieces(size: int) -> list[tuple[int, int]]:
    """The beginning and the end of each piece of a file of `size` bytes; none for an empty file."""
    return [(start, min(size, start + PIECE_BYTES)) for start in range(0, size, PIECE_BYTES)]


def _few_enough(files: tuple[ModelFile, ...]) -> tuple[ModelFile, ...]:
    count = sum(-(-file.bytes // PIECE_BYTES) for file in files)
    if count > MAX_PIECES:
        raise ValueError(f"{count:,} pieces of {PIECE_BYTES:,} bytes; at most {MAX_PIECES:,} go into one artifact")
    return files


StoredFiles = Annotated[tuple[ModelFile, ...], Field(max_length=MAX_FILES), AfterValidator(_few_enough)]


class Upload(Record):
    """A process asks for addresses before it sends files. `path` is the path of the artifact below the run's folder."""

    path: FileName
    files: StoredFiles = Field(min_length=1)


class FolderAsked(Record):
    """A process asks for a folder by its name in the assignment: a model's path, or an artifact of the run."""

    name: str = Field(min_length=1, max_length=1000)


class LinkedFile(ModelFile):
    """`urls`: one for each piece. Each holds for one method, for about an hour."""

    urls: tuple[str, ...]


class Links(Record):
    """`headers` go with each request that sends a piece."""

    files: tuple[LinkedFile, ...]
    headers: dict[str, str] = Field(default_factory=dict)
