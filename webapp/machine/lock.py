"""A lock: one supervisor per var folder."""

import fcntl
import os
from pathlib import Path
from typing import TextIO


class AlreadyRunning(RuntimeError):
    """Another `manage.py up` holds the folder; `pid` is its process."""

    def __init__(self, pid: str) -> None:
        self.pid = pid
        super().__init__(f"already running as process {pid}")


def take(var: Path) -> TextIO:
    """Holds the folder until the returned file is closed or the process ends, however it ends."""
    path = var / "run" / "up.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        pid = file.read().strip() or "?"
        file.close()
        raise AlreadyRunning(pid) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def is_held(var: Path) -> bool:
    """Whether a `manage.py up` holds the folder now."""
    try:
        with (var / "run" / "up.lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # nobody ever took it
        return False
    return False
