"""The manifest of a backup: a list of all that it holds."""

import re
from datetime import datetime

from pydantic import BaseModel, ConfigDict, ValidationError

from .problems import BackupProblem, Damaged
from .store import ContentStore

FORMAT = 2  # 1: without `former`


class ManifestRecord(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TableRows(ManifestRecord):
    """A table: `columns` with their `types` in the order of the copied text, whose `bytes` and SHA-256 these are."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: int
    bytes: int
    digest: str


class KeptFile(ManifestRecord):
    """A file below `var`. `modified` in nanoseconds: with the size it tells whether a file may have changed."""

    path: str
    bytes: int
    modified: int
    digest: str


class Manifest(ManifestRecord):
    """`key` is SECRET_KEY, in encrypted backups only; `key_mark` tells whether another key is the same one. `former`: keys before
    it, which still open rows of a backup that was made between a change of SECRET_KEY and `manage.py reencrypt`.

    `elsewhere`: files that rows name outside of `var`, which the backup does not hold. `lost`: files that rows name and
    that were not there.
    """

    format: int = FORMAT
    made_at: datetime
    seconds: float
    version: str
    server: str
    var: str
    migrations: tuple[tuple[str, str], ...]
    tables: tuple[TableRows, ...]
    sequences: dict[str, int]
    files: tuple[KeptFile, ...]
    elsewhere: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    key_mark: str
    key: str | None = None
    former: tuple[str, ...] = ()
    added: int

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    @property
    def size(self) -> int:
        """Bytes of what is restored."""
        return sum(table.bytes for table in self.tables) + sum(file.bytes for file in self.files)


def read(store: ContentStore, name: str) -> Manifest:
    """Raises Damaged, or BackupProblem if a newer program wrote it."""
    content = store.read_manifest(name)
    try:
        return Manifest.model_validate_json(content)
    except ValidationError as error:
        if not re.match(rb'\{"format":[12],', content):
            raise BackupProblem(
                "A newer version of Touchstone made this backup. Restore it with that version."
            ) from error
        raise Damaged(f"The manifest of {name} is not what was written.") from error


def newest(store: ContentStore) -> str:
    """Raises BackupProblem if there is none."""
    names = store.names()
    if not names:
        raise BackupProblem(f"There is no backup in {store.place.title}.")
    return names[-1]
