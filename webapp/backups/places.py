"""Places of backups: names with contents, each of which exists only as a whole. A place is a folder, or a bucket (`bucket`)."""

import fcntl
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from trainer.files import flush

from .problems import BackupProblem, Damaged, explain_full_disk

PARTIAL = ".partial"
LOCKS = frozenset({"lock", "reading"})


class ContentReader(Protocol):
    def read(self, size: int, /) -> bytes:
        """Reads this many bytes; fewer only at the end."""


class BackupPlace(Protocol):
    """`title`: its name for people. `scratch`: the folder in which a content is gathered until it gets its name."""

    title: str
    scratch: Path

    def names(self, under: str = "") -> Iterator[str]:
        """The names in the folder `under`, without those in its subfolders, except for `objects`: those two levels down."""

    def has(self, name: str) -> bool: ...

    def keep(self, partial: Path, name: str) -> None:
        """Moves the file `partial` to this name in the place. Raises BackupProblem; then the place does not have it."""

    def read(self, name: str) -> AbstractContextManager[ContentReader]:
        """Raises Damaged if it is not there, and BackupProblem if it cannot be read."""

    def remove(self, names: Iterable[str]) -> None: ...

    def free(self) -> int | None:
        """Bytes; None if nobody can tell."""

    def begin(self) -> None:
        """Makes it ready for its first backup. Raises BackupProblem if something else lies there."""

    def writing(self) -> AbstractContextManager[None]:
        """Lets one process write at a time. Raises BackupProblem. Removes what a killed process left incomplete."""

    def reading(self) -> AbstractContextManager[None]:
        """Keeps others from removing until the block ends. Raises BackupProblem while another process removes."""

    def removing(self) -> AbstractContextManager[None]:
        """Keeps others from writing and reading until the block ends. Raises BackupProblem."""


def no_backups_here(title: str, other: str) -> BackupProblem:
    return BackupProblem(
        f"{title} is not a folder of backups, and it is not empty: it contains {other}. Name another folder."
    )


class FolderPlace:
    """A place on a disk. A content is first written and flushed under another name."""

    def __init__(self, path: Path) -> None:
        self.path, self.title, self.scratch = path, str(path), path

    def names(self, under: str = "") -> Iterator[str]:
        pattern = "objects/*/*" if under == "objects" else f"{under}/*" if under else "*"
        for path in self.path.glob(pattern):
            if path.is_file() and path.name not in LOCKS:
                yield path.relative_to(self.path).as_posix()

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def keep(self, partial: Path, name: str) -> None:
        final = self.path / name
        with explain_full_disk(self.path):
            flush(partial)
            final.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial.replace(final)
            flush(final.parent)

    @contextmanager
    def read(self, name: str) -> Iterator[ContentReader]:
        try:
            file = (self.path / name).open("rb")
        except FileNotFoundError:
            raise Damaged(f"A file of the backup is missing: {self.path / name}.") from None
        with file:
            yield file

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def free(self) -> int | None:
        return shutil.disk_usage(self.path).free

    def begin(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        there = (path.name for path in self.path.iterdir())
        if other := next((name for name in there if name not in LOCKS and not name.endswith(PARTIAL)), None):
            raise no_backups_here(self.title, other)

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._locked("lock", fcntl.LOCK_EX, f"Another backup is being made in {self.path}."):
            for left in (*self.path.glob(f"*{PARTIAL}"), *self.path.glob(f"objects/*/*{PARTIAL}")):
                left.unlink(missing_ok=True)
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        busy = f"Old backups are being removed from {self.path}; try again when that is over."
        try:
            (self.path / "reading").open("a").close()
        except OSError:  # a copy of the folder, or one that cannot be written to: then nobody removes
            yield
            return
        with self._locked("reading", fcntl.LOCK_SH, busy):
            yield

    @contextmanager
    def removing(self) -> Iterator[None]:
        busy = f"A backup in {self.path} is being read; older ones are removed the next time."
        with self.writing(), self._locked("reading", fcntl.LOCK_EX, busy):
            yield

    @contextmanager
    def _locked(self, name: str, how: int, busy: str) -> Iterator[None]:
        """The lock ends with the process."""
        with (self.path / name).open("a") as file:
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BackupProblem(busy) from None
            yield
