"""Where the files of checkpoints lie."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trainer.files import flush

INDEX = "state.json"
"""The last file of a step; what it names is there."""


_STEP = "step-"
_ASIDE = ".before"


def name_of(step: int) -> str:
    return f"{_STEP}{step:06d}"


def step_of(name: str) -> int:
    return int(name.removeprefix(_STEP))


class OutOfReach(OSError):
    """This process cannot put files where the others do: it is on another machine and shares no disk with them."""


class CheckpointPlace(Protocol):
    """Steps, each a set of files and an index. Nothing of a step is seen before it is published, then all of it is.

    Several processes put files of one step, on several machines where the place reaches them; it is sent to them as it is.
    Every method may raise OSError.
    """

    def begin(self, step: int) -> None:
        """Forget what an attempt at this step has left that was never published."""
        ...

    def put(self, step: int, name: str, write: Callable[[Path], None]) -> None:
        """`write` fills a local file, which is kept for good under `name` when this returns. Raises OutOfReach."""
        ...

    def publish(self, step: int, index: str) -> None:
        """All files are there. The step takes the place of an earlier one of its number."""
        ...

    def abandon(self, step: int) -> None:
        """There will be no more files; what was put goes. Does nothing after `publish`."""
        ...

    def steps(self) -> list[int]:
        """Those that were published, ascending."""
        ...

    def index(self, step: int) -> str: ...

    def file(self, step: int, name: str) -> Path:
        """A local file with what was put under `name`; there may be none at that path."""
        ...

    def drop(self, step: int) -> None: ...

    def named(self, step: int) -> str:
        """The step as messages call it."""
        ...


@dataclass(frozen=True)
class Folder:
    """A folder with one folder for each step, which has its final name once it is whole: it is filled under another name,
    flushed to disk and renamed. One of its number that was there is renamed before and deleted after: whenever a kill comes,
    one of the two is there."""

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
        """Where the step lies; under the other name where a kill came between the two."""
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
