"""What several runs of one process hold in common: whatever is read from a model's folder is read once.

Each run has modules of its own, and the parameters in them are the same memory. So nobody may write into them: who samples with
merged weights needs a model apart (`lent.py`), and runs that train all weights cannot be together (`trainer.config.together`).
"""

import copy
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

_kept: dict[Hashable, Any] | None = None


@contextmanager
def in_common() -> Iterator[None]:
    """Meanwhile, in all threads of this process. Not within another."""
    global _kept  # noqa: PLW0603 - loaders are called from everywhere, and a process is together or is not
    _kept = {}
    try:
        yield
    finally:
        _kept = None


def is_common() -> bool:
    return _kept is not None


def once(what: Hashable, make: Callable[[], Any]) -> Any:
    """What `make` gives; the same for all who ask for the same. By itself each run makes its own."""
    if _kept is None:
        return make()
    if what not in _kept:
        _kept[what] = make()
    return _kept[what]


def with_the_same_weights(model: Any) -> Any:
    """Other modules with the very parameters and buffers of `model`."""
    held = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    return copy.deepcopy(model, held)
