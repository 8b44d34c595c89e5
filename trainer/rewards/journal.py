"""The values that a run was given, by place. A run that continues after a kill asks nothing twice, and trains on the same rewards.

The verdict store alone is not enough: it asks again for a call that failed, and services and packages store nothing.
"""

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trainer.config.rewards.parts import RewardPart
from trainer.contracts import Verdict, jsonlines
from trainer.judges.templates import canonical

from .parts import Item, Part, Services, Usage

_NOT_MEASURED = {"weight", "at_least", "at_most", "shadow", "on_missing", "budget_tokens", "budget_money"}
"""Fields that change how a value is used, but not the value."""
KEPT = 2
"""The number of older checkpoints whose values are kept: the newest may not be whole yet, and workers score ahead of it."""


def part_identity(part: RewardPart, services: Services) -> str:
    """A name for the judge or service of the part. It changes if the answers may change."""
    if judge := services.judges.get(part.asks_judge):
        return judge.key
    scalar = services.models.get(getattr(part, "model", ""))
    return scalar.key if scalar else ""


class JournalEntry(NamedTuple):
    """The value of the part `name` for the response at `place`. `key` is made of all that the value depends on."""

    key: str
    name: str
    place: str
    part: Part


class Notes:
    """The values in memory, in a worker that scores for a run elsewhere."""

    def __init__(self) -> None:
        self._known: dict[str, JournalEntry] = {}
        self._fresh: list[JournalEntry] = []

    def get(self, part: RewardPart, asked: str, item: Item) -> Part | None:
        found = self._known.get(_key(part, asked, item))
        return found.part if found else None

    def put(self, part: RewardPart, asked: str, item: Item, measured: Part) -> None:
        """Raises OSError if the disk is full; then nothing was written."""
        self._keep(JournalEntry(_key(part, asked, item), part.name, item.place, measured))

    def begin(self, known: Iterable[JournalEntry]) -> None:
        """From now on only these entries are known, and none is fresh."""
        self._known, self._fresh = {entry.key: entry for entry in known}, []

    @property
    def fresh(self) -> tuple[JournalEntry, ...]:
        """The entries since `begin`."""
        return tuple(self._fresh)

    def _keep(self, entry: JournalEntry) -> None:
        self._known[entry.key] = entry
        self._fresh.append(entry)


class Journal(Notes):
    """JSON Lines, one for each value. If a killed process left the last line unfinished, that line does not count.

    A checkpoint writes a mark with what was spent so far. Several threads use the journal.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._lock = path, threading.Lock()
        self._lines: list[JournalEntry | dict[str, Any]] = []
        """The entries, and the marks between them."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._read()
        self._open()

    def at(self, places: Sequence[str]) -> tuple[JournalEntry, ...]:
        """The entries for the responses at these places."""
        wanted = set(places)
        with self._lock:
            return tuple(entry for entry in self._known.values() if entry.place in wanted)

    def add(self, entries: Iterable[JournalEntry]) -> None:
        """Adds the entries of workers. Raises OSError if the disk is full."""
        for entry in entries:
            if entry.key not in self._known:
                self._keep(entry)

    def checkpoint(self, spent: dict[str, Any]) -> None:
        """Called before a checkpoint is written. Entries that no run will ask for are forgotten, because two older checkpoints are whole."""
        with self._lock:
            self._write(spent)
            marks = [place for place, line in enumerate(self._lines) if isinstance(line, dict)]
            if len(marks) > KEPT:
                self._replace(self._lines[marks[-1 - KEPT] :])

    def forget_missing(self) -> None:
        """Forgets entries without a value, so that they are asked again: the judge or service is repaired before the run continues."""
        with self._lock:
            self._replace([line for line in self._lines if isinstance(line, dict) or line.part.value is not None])

    def used(self, spent: dict[str, Any] | None = None) -> dict[str, Usage]:
        """The costs of the values that were written since the checkpoint with the mark `spent`, by the name of the part; without such
        a mark, of all values."""
        marks = [place for place, line in enumerate(self._lines) if line == spent]
        found: dict[str, Usage] = {}
        for line in self._lines[marks[-1] + 1 if marks else 0 :]:
            if isinstance(line, JournalEntry):
                found[line.name] = found.get(line.name, Usage()).plus(line.part.usage)
        return found

    def close(self) -> None:
        self._file.close()

    def _keep(self, entry: JournalEntry) -> None:
        with self._lock:
            self._write(entry)
            self._known[entry.key] = entry

    def _write(self, line: JournalEntry | dict[str, Any]) -> None:
        self._file.write(_dumped(line))
        self._lines.append(line)

    def _open(self) -> None:
        self._file = self._path.open(
            "ab", buffering=0
        )  # a write is with the system at once: a killed process loses none

    def _replace(self, kept: list[JournalEntry | dict[str, Any]]) -> None:
        """Replaces the whole file or nothing: the new file takes the place of the old one when it is written."""
        other = self._path.with_suffix(".partial")
        other.write_bytes(b"".join(map(_dumped, kept)))
        os.replace(other, self._path)
        self._file.close()
        self._open()
        self._lines = kept
        self._known = {line.key: line for line in kept if isinstance(line, JournalEntry)}

    def _read(self) -> None:
        whole = self._path.read_bytes()
        kept = whole[: whole.rfind(b"\n") + 1]
        if len(kept) < len(whole):
            os.truncate(self._path, len(kept))
        self._lines = [_loaded(row) for row in jsonlines.rows(kept.decode())]
        self._known = {line.key: line for line in self._lines if isinstance(line, JournalEntry)}


def _key(part: RewardPart, asked: str, item: Item) -> str:
    what = part.model_dump(mode="json", exclude=_NOT_MEASURED)
    facts = [dict(item.facts)] if item.facts else []
    text = canonical([item.place, what, asked, item.example.key, item.response, item.baseline, *facts])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _dumped(line: JournalEntry | dict[str, Any]) -> bytes:
    found: Any = line
    if isinstance(line, JournalEntry):
        part = line.part._asdict() | {
            "verdicts": [verdict.model_dump(mode="json") for verdict in line.part.verdicts],
            "usage": list(line.part.usage),
        }
        found = [line.key, line.name, part, line.place]
    return (json.dumps(found) + "\n").encode()


def _loaded(found: Any) -> JournalEntry | dict[str, Any]:
    if isinstance(found, dict):
        return found
    key, name, part, *place = found  # as earlier versions wrote it, without the place
    verdicts = tuple(Verdict.model_validate(verdict) for verdict in part["verdicts"])
    read = Part(**part | {"verdicts": verdicts, "usage": Usage(*part["usage"])})
    return JournalEntry(key, name, place[0] if place else "", read)
