"""Measures the use of the machine by a run: its own process, and everything else."""

import time

import psutil
import torch

from .gpus import GpuWatch
from .nvml import Nvml
from .traffic import Traffic

_GIB = 2.0**30


class Machine:
    """Measures from one look to the next. Workers of a cluster are processes of their own: of them only the machine's share tells."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._at, self._cpu_s = time.monotonic(), self._spent()
        self._traffic, self._gpus = Traffic(), GpuWatch(Nvml.found())
        psutil.cpu_percent()  # the first call only begins to measure

    def metrics(self) -> dict[str, float]:
        """`perf/cores`: processors that the process kept busy, on average since the last look; `perf/machine_busy`: the share of all
        processors that anything kept busy, and `perf/machine_cores` their number. `perf/memory_gib`: resident memory of the process; `perf/machine_memory`: the share of the
        machine's memory in use. With a GPU of its own, `perf/gpu_memory_gib`: the most that it has held at once so far. Also the metrics
        of `Traffic` and of `GpuWatch`.
        """
        now, cpu_s = time.monotonic(), self._spent()
        used = {
            "perf/cores": (cpu_s - self._cpu_s) / max(now - self._at, 1e-9),
            "perf/machine_busy": psutil.cpu_percent() / 100,
            "perf/machine_cores": float(psutil.cpu_count() or 1),
            "perf/memory_gib": self._process.memory_info().rss / _GIB,
            "perf/machine_memory": psutil.virtual_memory().percent / 100,
        }
        self._at, self._cpu_s = now, cpu_s
        if torch.cuda.is_initialized():
            used["perf/gpu_memory_gib"] = torch.cuda.max_memory_reserved() / _GIB
        return used | self._traffic.metrics() | self._gpus.metrics()

    def close(self) -> None:
        self._gpus.close()

    def _spent(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)
