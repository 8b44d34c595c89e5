"""Settings of every process that computes with a model: with other settings, repeats would give other numbers."""

import os


def settle_arithmetic(threads: int | None = None) -> None:
    """Use a fixed number of threads, because sums depend on it: `threads`, else `OMP_NUM_THREADS`, else all cores. Use no
    non-deterministic kernels, if the device has others.
    """
    import torch

    torch.set_num_threads(threads or int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))
    # Some kernels of a GPU have no deterministic form (sums along a row, attention's gradient): torch then only warns.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    # Filling fresh memory only helps to find reads of it, and costs a pass over every tensor.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # the module makes it at run time
