"""The run's events on disk, numbered, and in the file before any is sent."""

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from trainer.contracts import ArtifactData, RunEvent, StateData
from trainer.contracts.events import EventData

_BLOCK = 1 << 16
_SYNC_EVERY_S = 1.0
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

    Lines in the file survive the end of the process. They survive a power cut once the file is synced: with each state and artifact, and
    otherwise with the first event that comes a second after the last time, because each sync holds up the run, on some disks for a tenth of a
    second. A checkpoint syncs before it is written (`sync`), and a run that continues from it makes all later events again.

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
        self._unsynced: list[str] = []
        """Lines in the file that a disk may still refuse."""
        self._synced_at = time.monotonic()
        self._step = 0
        self._end, on_disk = _repair(path)
        self.last_seq = max(on_disk, last_seq)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    @property
    def path(self) -> Path:
        return self._path

    def append(self, data: EventData, step: int = 0) -> RunEvent:
        """Number the event and write it. Returns when it is in the file, or if `give_up` says to stop waiting."""
        event = self._queue(data, step)
        late = time.monotonic() - self._synced_at >= _SYNC_EVERY_S
        if not self._flush(late or isinstance(data, StateData | ArtifactData)):
            self._wait_for_room(step)
        return event

    def sync(self) -> None:
        """Return when all events would survive a power cut, or if `give_up` says to stop waiting for a full disk."""
        if not self._flush(sync=True):
            self._wait_for_room(self._step)

    def settle(self) -> bool:
        """Sync without waiting for a full disk; whether all events are on it."""
        return self._flush(sync=True)

    def _wait_for_room(self, step: int) -> None:
        self.pause(step)
        while not self._flush(sync=True) and not self.give_up():
            time.sleep(self._retry_s)
        self.unpause(step)

    def pause(self, step: int) -> None:
        """Report that the disk is full; the event stays in memory if it does not fit on the disk."""
        self._queue(
            StateData(
                state="paused",
                reason=f"Step {step} waits. No space left on the disk of {self._path.parent}. Free some space; the run then continues by itself",
            ),
            step,
        )
        self._flush(sync=True)

    def unpause(self, step: int) -> None:
        self._queue(StateData(state="running", reason="There is space on the disk again"), step)
        self._flush(sync=True)

    def tail(self) -> list[str]:
        """Lines that are not in the file yet, oldest first."""
        with self._lock:
            return list(self._unwritten)

    def close(self) -> None:
        os.close(self._file)

    def _queue(self, data: EventData, step: int) -> RunEvent:
        with self._lock:
            event = RunEvent(seq=self.last_seq + 1, time=datetime.now(UTC), step=step, data=data)
            self._unwritten.append(event.model_dump_json())
            self.last_seq, self._step = event.seq, step
            return event

    def _flush(self, sync: bool) -> bool:
        """Write the waiting lines, all or none, and sync if asked to; False if the disk is full."""
        with self._lock:
            return self._written() and (not sync or self._synced())

    def _written(self) -> bool:
        block = "".join(line + "\n" for line in self._unwritten).encode()
        try:
            done = 0
            while done < len(block):
                done += self._write(self._file, block[done:])
        except OSError as error:
            # Part of a line may have been written; no later line may follow it directly.
            return self._refused(error)
        self._end += len(block)
        self._unsynced += self._unwritten
        self._unwritten = []
        return True

    def _synced(self) -> bool:
        try:
            if self._unsynced:
                os.fsync(self._file)
        except OSError as error:
            self._unwritten = self._unsynced
            self._end -= sum(len(line.encode()) + 1 for line in self._unsynced)
            self._unsynced = []
            return self._refused(error)
        self._unsynced = []
        self._synced_at = time.monotonic()
        return True

    def _refused(self, error: OSError) -> bool:
        """Cut off all behind the last line that the disk has; False. Raises errors other than that of a full disk."""
        if error.errno not in FULL_DISK:
            raise error
        os.ftruncate(self._file, self._end)
        return False


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
