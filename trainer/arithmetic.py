"""How a process that computes with a model does it: every such process the same way, or repeats would differ."""

import os


def settle_arithmetic(threads: int | None = None) -> None:
    """The same number of threads gives the same sums: `threads`, else `OMP_NUM_THREADS`, else all cores. No
    non-deterministic kernels, as far as the device has others."""
    import torch

    torch.set_num_threads(threads or int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))
    # Some kernels of a GPU have no deterministic form (sums along a row, attention's gradient): there torch only warns.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    # Filling fresh memory would only help to find reads of it; it costs a pass over every tensor.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # the module makes it at run time
