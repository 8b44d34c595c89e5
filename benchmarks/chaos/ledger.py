"""A ledger records every event that can be seen from outside: one JSON object a line, on the disk before the next event."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from trainer.contracts import jsonlines


class Ledger:
    """The ledger. Threads may share one. It lies outside the installation whose losses it shows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, kind: str, **facts: Any) -> None:
        line = json.dumps({"kind": kind, "at": time.time(), **facts}) + "\n"
        with self._lock:
            os.write(self._file, line.encode())
            os.fsync(self._file)

    def read(self, kind: str) -> list[dict[str, Any]]:
        """The entries of a kind from the disk, oldest first; a line that a kill cut off is left out."""
        rows = []
        for line in jsonlines.lines(self.path.read_text()):
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
        return [row for row in rows if row["kind"] == kind]
