"""How a process reaches what lies in object storage: by addresses that its server has signed, never by credentials.

A file lies there in pieces of PIECE_BYTES, the last one shorter, under names that its SHA-256 gives. What lists the files of a
folder is told last, so a folder that is known is whole.
"""

from pydantic import Field

from .base import Record
from .model_folder import FileName, ModelFile

PIECE_BYTES = 64 << 20
"""Of one object: no storage takes 84 GB in one request, and what breaks off is begun again from here."""
MAX_FILES = 2000


def pieces(size: int) -> list[tuple[int, int]]:
    """Where each piece of a file of `size` bytes begins and ends; none for an empty file."""
    return [(start, min(size, start + PIECE_BYTES)) for start in range(0, size, PIECE_BYTES)]


class Upload(Record):
    """What a process asks for before it sends files: `path` is that of the artifact below the run's folder."""

    path: FileName
    files: tuple[ModelFile, ...] = Field(min_length=1, max_length=MAX_FILES)


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
