"""The run's events on disk, numbered, and safe there before any is sent."""

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from trainer.contracts import RunEvent, StateData
from trainer.contracts.events import EventData

_BLOCK = 1 << 16
FULL_DISK = {errno.ENOSPC, errno.EDQUOT}


def disk_is_full(error: BaseException) -> bool:
    """Whether an error says that the disk is full. safetensors has its own error, whose text contains the number."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL_DISK
    return any(f"(os error {number})" in str(error) for number in FULL_DISK)


class Spool:
    """Appends events to `events.jsonl`, one JSON object a line, each with the next number.

    Numbers continue across restarts: after the last whole line of the file, or after `last_seq` if the server knows more
    (the folder was lost). A line that a kill cut off is removed; its event was never acknowledged, and the resumed step
    writes it again.

    On a full disk `append` blocks: it reports the state `paused`, tries again every `retry_s` and then reports `running`.
    The events of that time wait in memory, where the sender finds them too (`tail`), so the page shows the pause.
    """

    def __init__(
        self,
        path: Path,
        last_seq: int = 0,
        retry_s: float = 2.0,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._retry_s, self._write = path, retry_s, write
        self.give_up: Callable[[], bool] = lambda: False
        self._lock = threading.RLock()
        self._unwritten: list[str] = []
        self._offset, on_disk = _repair(path)
        self.last_seq = max(on_disk, last_seq)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    @property
    def path(self) -> Path:
        return self._path

    def append(self, data: EventData, step: int = 0) -> RunEvent:
        """Number the event and put it on disk. Returns when it is there, or if `give_up` says to stop waiting."""
        event = self._queue(data, step)
        if self._flush():
            return event
        self.pause(step)
        while not self._flush() and not self.give_up():
            time.sleep(self._retry_s)
        self.unpause(step)
        return event

    def pause(self, step: int) -> None:
        """Report that the disk is full; the event stays in memory if it does not fit on the disk."""
        self._queue(
            StateData(
                state="paused",
                reason=f"Step {step} waits. No space left on the disk of {self._path.parent}. Free some space; the run then continues by itself",
            ),
            step,
        )
        self._flush()

    def unpause(self, step: int) -> None:
        self._queue(StateData(state="running", reason="There is space on the disk again"), step)
        self._flush()

    def tail(self) -> list[str]:
        """Lines that are not on disk yet, oldest first."""
        with self._lock:
            return list(self._unwritten)

    def close(self) -> None:
        os.close(self._file)

    def _queue(self, data: EventData, step: int) -> RunEvent:
        with self._lock:
            event = RunEvent(seq=self.last_seq + 1, time=datetime.now(UTC), step=step, data=data)
            self._unwritten.append(event.model_dump_json())
            self.last_seq = event.seq
            return event

    def _flush(self) -> bool:
        """Write the waiting lines, all or none; False if the disk is full."""
        with self._lock:
            block = "".join(line + "\n" for line in self._unwritten).encode()
            try:
                written = 0
                while written < len(block):
                    written += self._write(self._file, block[written:])
                os.fsync(self._file)
            except OSError as error:
                if error.errno not in FULL_DISK:
                    raise
                # Part of a line may have been written; no later line may follow it directly.
                os.ftruncate(self._file, self._offset)
                return False
            self._offset += len(block)
            self._unwritten.clear()
            return True


def _repair(path: Path) -> tuple[int, int]:
    """Cut off a torn last line. Returns the bytes kept and the number of the last event. Reads only the end, because a spool may be
    gigabytes.
    """
    if not path.exists():
        return 0, 0
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        kept = _line_start(file, end)
        if kept < end:
            file.truncate(kept)
        if not kept:
            return 0, 0
        file.seek(_line_start(file, kept - 1))
        return kept, int(json.loads(file.readline())["seq"])


def _line_start(file: BinaryIO, end: int) -> int:
    """The position behind the last line break before `end`; 0 if there is none."""
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
