"""A thread that looks at the GPUs every second: they only tell how busy they are at the moment, and a step lasts longer."""

import threading
from statistics import fmean

from .nvml import GpuUse, Nvml

PERIOD_S = 1.0


class GpuWatch:
    """The means over all looks since the last question, and over all GPUs. Without a GPU there is no thread, and nothing to tell."""

    def __init__(self, gpus: Nvml | None, period_s: float = PERIOD_S) -> None:
        self._gpus, self._period_s = gpus, period_s
        self._lock, self._over = threading.Lock(), threading.Event()
        self._seen: list[GpuUse] = []
        if gpus is not None:
            threading.Thread(target=self._watch, args=(gpus,), name="gpus", daemon=True).start()

    def metrics(self) -> dict[str, float]:
        """`perf/gpu_busy`: the share of the time in which the GPUs computed; `perf/gpu_memory`: the share of their memory in use."""
        if self._gpus is None:
            return {}
        with self._lock:
            seen, self._seen = self._seen, []
        seen = seen or self._gpus.look()
        told = {
            "perf/gpu_busy": [each.busy for each in seen if each.busy is not None],
            "perf/gpu_memory": [each.memory for each in seen if each.memory is not None],
        }
        return {key: fmean(values) for key, values in told.items() if values}

    def close(self) -> None:
        self._over.set()

    def _watch(self, gpus: Nvml) -> None:
        while not self._over.wait(self._period_s):
            found = gpus.look()
            with self._lock:
                self._seen += found
