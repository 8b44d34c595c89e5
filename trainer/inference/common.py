"""Shares one model among several runs of a process: each file of its folder is read once.

Each run has its own modules, and their parameters are the same memory. So no run may write into them: a run that samples with
merged weights needs a separate model (`shared_sampler.py`), and runs that train all weights cannot train together (`trainer.config.together`).
"""

import copy
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

_kept: dict[Hashable, Any] | None = None
_ahead: dict[Hashable, Any] = {}


@contextmanager
def in_common() -> Iterator[None]:
    """While the block runs, all threads of this process share what `once` makes, and what was made ahead of it. Cannot be nested."""
    global _kept, _ahead  # noqa: PLW0603 - loaders are called from everywhere, and a process is together or is not
    _kept, _ahead = _ahead, {}
    try:
        yield
    finally:
        _kept = None


@contextmanager
def ahead() -> Iterator[None]:
    """Keep what `once` makes meanwhile for the next `in_common`, also that of a process that is copied from this one."""
    global _kept  # noqa: PLW0603 - as above
    _kept = _ahead
    try:
        yield
    finally:
        _kept = None


def is_common() -> bool:
    return _kept is not None


def once(what: Hashable, make: Callable[[], Any]) -> Any:
    """The result of `make`, the same for all callers with the same key. A run alone makes its own."""
    if _kept is None:
        return make()
    if what not in _kept:
        _kept[what] = make()
    return _kept[what]


def with_the_same_weights(model: Any) -> Any:
    """New modules with the same parameters and buffers as `model`, without a copy."""
    held = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    return copy.deepcopy(model, held)
