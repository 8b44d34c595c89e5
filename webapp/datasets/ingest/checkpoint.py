"""Stores the progress of an import: everything up to here is committed, and a worker that takes the import continues from here."""

from dataclasses import asdict, dataclass, field
from typing import Any

from .inspection import ImportSource


@dataclass(frozen=True)
class ImportCheckpoint:
    """`rows` rows of file number `file` are taken, and all files before it, whose size is `bytes_before`.

    `good` of the rows can be imported. `stored` is the number of members of the version that is being filled, and `indexed` is how many of
    them are found by their words. `deaths` is how often the reading process died here. `source` distinguishes the file from another one
    with its name. `latest` is the newest version of the dataset when the import began. `unmet` are columns that the given mapping names and
    no row had so far, `unread` those that it does not name, with the number of rows. An earlier release counted neither.
    """

    version: int
    source: str
    latest: int | None
    file: int = 0
    rows: int = 0
    bytes_before: int = 0
    good: int = 0
    stored: int = 0
    indexed: int = 0
    deaths: int = 0
    unmet: tuple[str, ...] = ()
    unread: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, data: dict[str, Any]) -> "ImportCheckpoint | None":
        return cls(**{**data, "unmet": tuple(data.get("unmet", ()))}) if data else None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def source(given: ImportSource) -> str:
    """A text that changes if the files change."""
    return f"{given.size}:{given.changed}"
