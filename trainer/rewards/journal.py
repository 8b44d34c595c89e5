"""What a run was told, by place: a run that goes on after it was killed asks nothing twice and trains on the same rewards.

The verdict store alone would not do: a call that failed is asked again there, and services and packages keep nothing.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from trainer.config.rewards import RewardPart
from trainer.contracts import Verdict
from trainer.judges.templates import canonical

from .parts import Item, Part, Services, Usage

_NOT_MEASURED = {"weight", "at_least", "at_most", "shadow", "on_missing", "budget_tokens", "budget_money"}
"""What changes what becomes of a value, not the value."""


def who(part: RewardPart, services: Services) -> str:
    """A name for whom the part asks that changes when its answers may."""
    if judge := services.judges.get(part.asks_judge):
        return judge.key
    scalar = services.models.get(getattr(part, "model", ""))
    return scalar.key if scalar else ""


class Journal:
    """JSON Lines, one per value. A last line that a killed process left unfinished counts as not written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Part] = {}
        self.used: dict[str, Usage] = {}
        """What the values that were found written down had taken, by the name of the part."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._read()
        self._file = path.open("ab", buffering=0)  # a write is with the system at once: who is killed loses none

    def get(self, part: RewardPart, asked: str, item: Item) -> Part | None:
        return self._known.get(_key(part, asked, item))

    def put(self, part: RewardPart, asked: str, item: Item, measured: Part) -> None:
        """Raises OSError where the disk is full; then nothing of it was written."""
        key = _key(part, asked, item)
        self._file.write((json.dumps([key, part.name, _dumped(measured)]) + "\n").encode())
        self._known[key] = measured

    def forget(self) -> None:
        """What is known is older than the newest checkpoint, so no run will ask for it."""
        self._known.clear()
        self._file.truncate(0)

    def close(self) -> None:
        self._file.close()

    def _read(self) -> None:
        whole = self._path.read_bytes()
        kept = whole[: whole.rfind(b"\n") + 1]
        if len(kept) < len(whole):
            os.truncate(self._path, len(kept))
        for line in kept.decode().split("\n"):
            if line:
                key, name, found = json.loads(line)
                self._known[key] = known = _loaded(found)
                self.used[name] = self.used.get(name, Usage()).plus(known.usage)


def _key(part: RewardPart, asked: str, item: Item) -> str:
    what = part.model_dump(mode="json", exclude=_NOT_MEASURED)
    text = canonical([item.place, what, asked, item.example.key, item.response, item.baseline])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _dumped(part: Part) -> dict[str, Any]:
    found = part._asdict()
    return found | {
        "verdicts": [verdict.model_dump(mode="json") for verdict in part.verdicts],
        "usage": list(part.usage),
    }


def _loaded(found: dict[str, Any]) -> Part:
    verdicts = tuple(Verdict.model_validate(verdict) for verdict in found["verdicts"])
    return Part(**found | {"verdicts": verdicts, "usage": Usage(*found["usage"])})
