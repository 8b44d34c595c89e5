"""The places in which the files of checkpoints lie."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trainer.files import flush

INDEX = "state.json"
"""The last file of a step; the files that it names are there."""


_STEP = "step-"
_ASIDE = ".before"


def name_of(step: int) -> str:
    return f"{_STEP}{step:06d}"


def step_of(name: str) -> int:
    return int(name.removeprefix(_STEP))


class OutOfReach(OSError):
    """A process cannot put files at the place, because it is on another machine, without a common disk."""


class CheckpointPlace(Protocol):
    """Steps, each a set of files and an index. Nothing of a step is seen before it is published; then all of it is.

    Several processes put files of one step, also on several machines if the place reaches them; the place can be sent to them.
    Every method may raise OSError.
    """

    def begin(self, step: int) -> None:
        """Remove what an unpublished attempt at this step has left."""
        ...

    def put(self, step: int, name: str, write: Callable[[Path], None]) -> None:
        """`write` fills a local file, which is stored under `name` when this returns. Raises OutOfReach."""
        ...

    def publish(self, step: int, index: str) -> None:
        """Publish the step, once all files are there. It replaces an earlier step of its number."""
        ...

    def abandon(self, step: int) -> None:
        """Remove what was put, because no more files will come. Does nothing after `publish`."""
        ...

    def steps(self) -> list[int]:
        """The published steps, ascending."""
        ...

    def index(self, step: int) -> str: ...

    def file(self, step: int, name: str) -> Path:
        """The path of the local file `name`; there may be no file at it."""
        ...

    def drop(self, step: int) -> None: ...

    def named(self, step: int) -> str:
        """The name of the step in messages."""
        ...


@dataclass(frozen=True)
class Folder:
    """A folder with one folder for each step, which gets its final name once it is complete: it is filled under another name,
    flushed to disk and renamed. An earlier folder of its number is renamed before and deleted after, so that a kill
    at any time leaves one of the two.
    """

    root: Path

    def begin(self, step: int) -> None:
        shutil.rmtree(self._partial(step), ignore_errors=True)
        self._partial(step).mkdir(parents=True)
        if self._whole(step).is_dir():
            shutil.rmtree(self._aside(step), ignore_errors=True)
        elif self._aside(step).is_dir():
            os.replace(self._aside(step), self._whole(step))

    def put(self, step: int, name: str, write: Callable[[Path], None]) -> None:
        if not self._partial(step).is_dir():
            raise OutOfReach(f"{self._partial(step)} is not on this machine")
        write(self._partial(step) / name)
        flush(self._partial(step) / name)

    def publish(self, step: int, index: str) -> None:
        self.put(step, INDEX, lambda path: _write_text(path, index))
        flush(self._partial(step))
        # A resumed run reaches the same step again and writes the same content.
        if self._whole(step).is_dir():
            os.replace(self._whole(step), self._aside(step))
        os.replace(self._partial(step), self._whole(step))
        flush(self.root)
        shutil.rmtree(self._aside(step), ignore_errors=True)

    def abandon(self, step: int) -> None:
        shutil.rmtree(self._partial(step), ignore_errors=True)

    def steps(self) -> list[int]:
        whole = {step_of(path.name) for path in self.root.glob(f"{_STEP}*") if path.is_dir()}
        aside = {step_of(path.stem[1:]) for path in self.root.glob(f".{_STEP}*{_ASIDE}") if path.is_dir()}
        return sorted(whole | aside)

    def index(self, step: int) -> str:
        return self.file(step, INDEX).read_text()

    def file(self, step: int, name: str) -> Path:
        return self.folder(step) / name

    def drop(self, step: int) -> None:
        shutil.rmtree(self._aside(step), ignore_errors=True)
        shutil.rmtree(self._whole(step), ignore_errors=True)

    def named(self, step: int) -> str:
        return str(self.folder(step))

    def folder(self, step: int) -> Path:
        """The place of the step: under the other name if a kill came between the two renames."""
        lies_aside = self._aside(step).is_dir() and not self._whole(step).is_dir()
        return self._aside(step) if lies_aside else self._whole(step)

    def _whole(self, step: int) -> Path:
        return self.root / name_of(step)

    def _aside(self, step: int) -> Path:
        return self.root / f".{name_of(step)}{_ASIDE}"

    def _partial(self, step: int) -> Path:
        return self.root / f".{name_of(step)}.partial"


def _write_text(path: Path, text: str) -> None:
    path.write_text(text)
