"""A wall clock that can be set while everything runs: libfaketime, loaded into every process of an installation.

The library answers whoever asks for the time of day, by an offset that it reads from a file every second; the clock that only runs forward
stays true. Debian and Ubuntu have it as the package `faketime`.
"""

import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

FOLDERS = ("/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/local/lib/faketime")
NAME = "libfaketimeMT.so.1"  # the one for programs with threads
READ_AGAIN_S = 1
SHARED = Path("/dev/shm")  # noqa: S108  where the library keeps what its processes share


def library(folders: Iterable[str] = FOLDERS) -> Path | None:
    found = (path for folder in folders for path in Path("/").glob(f"{folder.lstrip('/')}/{NAME}"))
    return next(found, None)


class Clock:
    """`environment` is for a process and all that it starts."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ts-clock-"))
        self._folder.chmod(0o755)  # the embedded Postgres may be another user's
        self._file = self._folder / "offset"
        self.set(0)
        self.environment = {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": str(READ_AGAIN_S),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, hours: int) -> None:
        """So many hours beside the true time. Known to everybody once READ_AGAIN_S and another second are over."""
        partial = self._folder / "partial"
        partial.write_text(f"{hours:+d}h\n")
        partial.replace(self._file)

    def share(self, pid: int, timeout_s: float = 10.0) -> None:
        """What the library of process `pid` shares with its children is for its own user alone: opens it to all. Otherwise no child could
        begin that is another user's."""
        ours = [SHARED / f"sem.faketime_sem_{pid}", SHARED / f"faketime_shm_{pid}"]
        deadline = time.monotonic() + timeout_s
        while not all(path.exists() for path in ours):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{ours} are not there: is the library loaded?")
            time.sleep(0.005)
        for path in ours:
            path.chmod(0o666)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
