"""What a run was told, by place: a run that goes on after it was killed asks nothing twice and trains on the same rewards.

The verdict store alone would not do: a call that failed is asked again there, and services and packages keep nothing.
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
"""What changes what becomes of a value, not the value."""
KEPT = 2
"""Checkpoints whose values are kept behind the newest one: that one may not be whole yet, and workers score ahead of it."""


def who(part: RewardPart, services: Services) -> str:
    """A name for whom the part asks that changes when its answers may."""
    if judge := services.judges.get(part.asks_judge):
        return judge.key
    scalar = services.models.get(getattr(part, "model", ""))
    return scalar.key if scalar else ""


class Entry(NamedTuple):
    """The value that the part `name` has for the response at `place`; `key` is the address of all that it depends on."""

    key: str
    name: str
    place: str
    part: Part


class Notes:
    """What was told, in memory: of a worker that scores for a run elsewhere."""

    def __init__(self) -> None:
        self._known: dict[str, Entry] = {}
        self._fresh: list[Entry] = []

    def get(self, part: RewardPart, asked: str, item: Item) -> Part | None:
        found = self._known.get(_key(part, asked, item))
        return found.part if found else None

    def put(self, part: RewardPart, asked: str, item: Item, measured: Part) -> None:
        """Raises OSError where it is to be written down and the disk is full; then nothing of it was written."""
        self._keep(Entry(_key(part, asked, item), part.name, item.place, measured))

    def begin(self, known: Iterable[Entry]) -> None:
        """Only these are known from here on, and nothing is fresh."""
        self._known, self._fresh = {entry.key: entry for entry in known}, []

    @property
    def fresh(self) -> tuple[Entry, ...]:
        """What was told since `begin`."""
        return tuple(self._fresh)

    def _keep(self, entry: Entry) -> None:
        self._known[entry.key] = entry
        self._fresh.append(entry)


class Journal(Notes):
    """JSON Lines, one per value. A last line that a killed process left unfinished counts as not written.

    A checkpoint leaves a mark with what was spent by then. Used by several threads.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._lock = path, threading.Lock()
        self._lines: list[Entry | dict[str, Any]] = []
        """Entries, and the marks between them."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._read()
        self._open()

    def at(self, places: Sequence[str]) -> tuple[Entry, ...]:
        """What is known of the responses at these places."""
        wanted = set(places)
        with self._lock:
            return tuple(entry for entry in self._known.values() if entry.place in wanted)

    def add(self, entries: Iterable[Entry]) -> None:
        """What workers were told. Raises OSError where the disk is full."""
        for entry in entries:
            if entry.key not in self._known:
                self._keep(entry)

    def checkpoint(self, spent: dict[str, Any]) -> None:
        """A checkpoint is about to be written. What no run will ask for, since two older ones are whole, is forgotten."""
        with self._lock:
            self._write(spent)
            marks = [place for place, line in enumerate(self._lines) if isinstance(line, dict)]
            if len(marks) > KEPT:
                self._replace(self._lines[marks[-1 - KEPT] :])

    def forget_missing(self) -> None:
        """What has no value is asked again, since whoever gave none is to be mended before the run goes on."""
        with self._lock:
            self._replace([line for line in self._lines if isinstance(line, dict) or line.part.value is not None])

    def used(self, spent: dict[str, Any] | None = None) -> dict[str, Usage]:
        """What the values took that were written down since the checkpoint that says `spent`, by the name of the part; of
        all where there is no such mark."""
        marks = [place for place, line in enumerate(self._lines) if line == spent]
        found: dict[str, Usage] = {}
        for line in self._lines[marks[-1] + 1 if marks else 0 :]:
            if isinstance(line, Entry):
                found[line.name] = found.get(line.name, Usage()).plus(line.part.usage)
        return found

    def close(self) -> None:
        self._file.close()

    def _keep(self, entry: Entry) -> None:
        with self._lock:
            self._write(entry)
            self._known[entry.key] = entry

    def _write(self, line: Entry | dict[str, Any]) -> None:
        self._file.write(_dumped(line))
        self._lines.append(line)

    def _open(self) -> None:
        self._file = self._path.open("ab", buffering=0)  # a write is with the system at once: who is killed loses none

    def _replace(self, kept: list[Entry | dict[str, Any]]) -> None:
        """Whole or not at all: the file takes the old one's place once it is written."""
        other = self._path.with_suffix(".partial")
        other.write_bytes(b"".join(map(_dumped, kept)))
        os.replace(other, self._path)
        self._file.close()
        self._open()
        self._lines = kept
        self._known = {line.key: line for line in kept if isinstance(line, Entry)}

    def _read(self) -> None:
        whole = self._path.read_bytes()
        kept = whole[: whole.rfind(b"\n") + 1]
        if len(kept) < len(whole):
            os.truncate(self._path, len(kept))
        self._lines = [_loaded(row) for row in jsonlines.rows(kept.decode())]
        self._known = {line.key: line for line in self._lines if isinstance(line, Entry)}


def _key(part: RewardPart, asked: str, item: Item) -> str:
    what = part.model_dump(mode="json", exclude=_NOT_MEASURED)
    facts = [dict(item.facts)] if item.facts else []
    text = canonical([item.place, what, asked, item.example.key, item.response, item.baseline, *facts])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _dumped(line: Entry | dict[str, Any]) -> bytes:
    found: Any = line
    if isinstance(line, Entry):
        part = line.part._asdict() | {
            "verdicts": [verdict.model_dump(mode="json") for verdict in line.part.verdicts],
            "usage": list(line.part.usage),
        }
        found = [line.key, line.name, part, line.place]
    return (json.dumps(found) + "\n").encode()


def _loaded(found: Any) -> Entry | dict[str, Any]:
    if isinstance(found, dict):
        return found
    key, name, part, *place = found  # without the place as earlier versions wrote it
    verdicts = tuple(Verdict.model_validate(verdict) for verdict in part["verdicts"])
    read = Part(**part | {"verdicts": verdicts, "usage": Usage(*part["usage"])})
    return Entry(key, name, place[0] if place else "", read)
