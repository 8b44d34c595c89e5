"""Settings of every process that computes with a model: with other settings, repeats would give other numbers. Imports torch only to set it."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from trainer.devices import cards, on_purpose
from trainer.memory.shape import ModelShape, ShapeUnknown

_LEAST = 1 << 16
"""With matrices of fewer numbers, threads wait for each other longer than they compute."""


def settle_arithmetic(threads: int | None = None, models: Iterable[Path] = ()) -> None:
    """Use a fixed number of threads, because sums depend on it: `threads`, else `OMP_NUM_THREADS`, else one if all `models` (their directories)
    are too small for several, else all cores. Use no non-deterministic kernels, if the device has others.
    """
    import torch

    cores = 1 if all_small(models) else len(os.sched_getaffinity(0))
    torch.set_num_threads(threads or int(os.environ.get("OMP_NUM_THREADS") or cores))
    # Some kernels of a GPU have no deterministic form (sums along a row, attention's gradient): torch then only warns.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    # Filling fresh memory only helps to find reads of it, and costs a pass over every tensor.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # the module makes it at run time


def processes_for(models: Iterable[Path]) -> int:
    """The number of processes that may compute with `models` at the same time without waiting for each other's cores: more than one only
    if all models are small. A run with others uses all cores, and much memory. On a GPU it is one.
    """
    if (cards() and not on_purpose()) or not all_small(models):
        return 1
    return max(1, len(os.sched_getaffinity(0)) // int(os.environ.get("OMP_NUM_THREADS") or 1))


def all_small(models: Iterable[Path]) -> bool:
    """Whether there are models, and none has a matrix of `_LEAST` numbers."""
    largest = [_largest_matrix(directory) for directory in models]
    return bool(largest) and all(numbers < _LEAST for numbers in largest)


def _largest_matrix(directory: Path) -> float:
    """The count of numbers that the largest matrix of the model has; infinite if its config does not say so."""
    try:
        shape = ModelShape.of(json.loads((directory / "config.json").read_text()))
    except (OSError, ValueError, ShapeUnknown):
        return float("inf")
    return shape.hidden * max(shape.inner, shape.queries, shape.vocabulary)
