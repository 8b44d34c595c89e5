"""Time and memory of a device, and its peak speed."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from benchmarks.trainer_side import peak_mib, reset_peak

PEAKS = {"H100 80GB HBM3": 989e12, "H100 PCIe": 756e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12}
"""Dense bfloat16 FLOP/s by a part of the GPU's name, from NVIDIA's data sheets."""


@dataclass
class Metered:
    seconds: float = 0.0
    peak_gib: float = 0.0


@contextmanager
def measuring(device: str) -> Iterator[Metered]:
    """Seconds until the device has done its work, and the most memory that it had meanwhile: on a GPU what torch had
    allocated there, on a CPU that of the process.
    """
    found = Metered()
    settle(device)
    reset_peak(device)
    started = time.perf_counter()
    yield found
    settle(device)
    found.seconds = time.perf_counter() - started
    found.peak_gib = peak_mib(device) / 1024


def settle(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def own_gib() -> float:
    """The used memory of a GPU that is not torch's: CUDA's own, and that of other processes."""
    free, total = torch.cuda.mem_get_info()
    return (total - free - torch.cuda.memory_reserved()) / 2**30


def empty(device: str) -> None:
    """Free memory without owners: models refer to themselves in circles, which Python finds only now and then."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def peak_flops(device: str) -> float | None:
    """The peak of this GPU in bfloat16; None if its data sheet is not known here."""
    name = torch.cuda.get_device_name(0) if device == "cuda" else ""
    return next((flops for part, flops in PEAKS.items() if part in name), None)
