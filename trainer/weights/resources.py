"""The time and memory that the process of a job has used."""

import os
import resource
import sys

from trainer.contracts.weights import WeightsUse


def process_usage() -> WeightsUse:
    """The use by this process and its children that have ended. torch is looked at only if something else has loaded it."""
    mine, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    device, gpu_bytes = _gpu()
    return WeightsUse(
        device=device,
        cpu_seconds=round(mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime, 2),
        memory_bytes=max(mine.ru_maxrss, children.ru_maxrss) * 1024,  # Linux counts in KiB
        gpu_bytes=gpu_bytes,
        processors=len(os.sched_getaffinity(0)),
    )


def _gpu() -> tuple[str, int | None]:
    torch = sys.modules.get("torch")
    if torch is None:
        return "", None
    try:
        if not torch.cuda.is_initialized():
            return "CPU", None
        return str(torch.cuda.get_device_name(0))[:120], int(torch.cuda.max_memory_allocated())
    except AttributeError:  # the working thread is importing it at this moment
        return "", None
