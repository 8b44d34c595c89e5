"""A wall clock that can be set while everything runs, in every process of an installation.

A small library (clock.c), compiled at the start and loaded into each process, changes the C library's answers about the time of day by an
offset in a file that all processes map. The monotonic clock stays true, and so does the time that a program asks the kernel for directly.
libfaketime 0.9.10, which Debian 12 has, does the same, but ends every `time.sleep` of Python 3.11 with an error (its issue 426).
"""

import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


def compiler() -> str | None:
    return shutil.which("cc")


class ShiftedClock:
    """The shifted clock. `environment` is for a process and everything that it starts."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ts-clock-"))
        self._folder.chmod(0o755)  # the embedded Postgres may run as another user
        library, self._file = self._folder / "clock.so", self._folder / "offset"
        command = [str(compiler()), "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        self._file.touch()
        self.set(0)
        for path in (library, self._file):
            path.chmod(0o644)
        self.environment = {"LD_PRELOAD": str(library), "TOUCHSTONE_CLOCK": str(self._file)}

    def set(self, hours: int) -> None:
        """Set the clock this many hours from the true time, from now on and for every process."""
        file = os.open(self._file, os.O_WRONLY)
        try:
            os.pwrite(file, struct.pack("=q", 3600 * hours), 0)
        finally:
            os.close(file)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
