"""Parts of W&B that are not here. A program that uses them continues: it is told so once for each of them."""

import logging
from collections.abc import Iterator
from functools import cache
from typing import Any

from .wandb_config import UsageError

logger = logging.getLogger("touchstone.wandb")
_TOLD: set[str] = set()
NEEDED = ("Api", "PublicApi", "agent", "controller", "launch", "restore", "sweep", "use_artifact", "use_model")
"""Names that give a program something that it then needs: it cannot continue without them."""


def once(words: str, *given: Any) -> None:
    """Warns of something the first time that it happens."""
    said = words % given
    if said not in _TOLD:
        _TOLD.add(said)
        logger.warning("%s", said)


def _use(name: str) -> None:
    """Says once that it does nothing. Raises UsageError for one of NEEDED: a package may import it, but not call it."""
    if name.rpartition(".")[2] in NEEDED:
        raise UsageError(f"touchstone has no {name}. See docs/logging.md and docs/api.md for what it has instead.")
    once("touchstone has no %s: nothing happens when it is used", name)


class Unsupported:
    """Stands for something that is not here: it can be called, and has every attribute."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: Any, **__: Any) -> "Unsupported":
        _use(self._name)
        return Unsupported(self._name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("shape", "size", "numel", "item"):  # not a number either
            raise AttributeError(name)
        return standing_for(f"{self._name}.{name}")

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> "Unsupported":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __repr__(self) -> str:
        return f"{self._name} (not in touchstone)"


@cache
def standing_for(name: str) -> Any:
    """A stand-in for this name: a class if it begins like one, because programs ask of which class a value is."""
    if not name.rpartition(".")[2][:1].isupper():
        return Unsupported(name)

    def begin(self: Unsupported, *_: Any, **__: Any) -> None:
        Unsupported.__init__(self, name)
        _use(name)

    return type(name.rpartition(".")[2], (Unsupported,), {"__init__": begin})
