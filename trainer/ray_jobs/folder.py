"""A run's folder belongs to one process at a time."""

import errno
import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOK_S = 0.2
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}


class FolderTaken(Exception):
    """Another process writes to the folder, and did not stop in time."""


@contextmanager
def lock_folder(folder: Path, patience_s: float) -> Iterator[None]:
    """Wait until no other process is in the folder, and keep others out of it.

    An earlier attempt may outlive the process that started it: Ray was killed, and the attempt has not noticed yet. It would continue
    writing checkpoints and events between those of its successor. The kernel frees the lock when a process ends in any way. Raises
    FolderTaken after `patience_s`. A file system without locks keeps no process out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        deadline = time.monotonic() + patience_s
        while not _locked(file.fileno()):
            if time.monotonic() > deadline:
                raise FolderTaken(f"another process has been writing to {folder} for {patience_s:.0f} s")
            time.sleep(_LOOK_S)
        yield


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True
