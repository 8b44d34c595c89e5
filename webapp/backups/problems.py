"""Errors of backups, each with one sentence that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from pathlib import Path

from webapp.core.problems import Problem


class BackupProblem(Problem):
    """A backup, a restoration or a drill cannot continue (409)."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="backup", status=409)


class WrongKey(BackupProblem):
    """The passphrase or key file is not the one of the backups, or one is missing."""


class Damaged(BackupProblem):
    """The content of the backup is not what was written."""


class Cancelled(BackupProblem):
    """Somebody asked for the end."""


@contextmanager
def explain_full_disk(folder: Path) -> Iterator[None]:
    """Turns the system's error about a full disk into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            raise BackupProblem(
                f"The disk of {folder} is full. Free some space, or name another folder; earlier backups are as they were."
            ) from error
        raise
