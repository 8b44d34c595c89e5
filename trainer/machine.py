"""The machine on which a measurement was taken, in one line."""

import os
import platform
import sys
from pathlib import Path


def describe() -> str:
    """CPU, cores that this process may use, memory, present load, versions of kernel and Python; the GPU if torch sees one."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    parts = [_processor(), f"{cores} cores", f"{memory:.0f} GiB", f"load {os.getloadavg()[0]:.1f}", *_gpu()]
    return ", ".join([*parts, f"Linux {platform.release()}", f"Python {platform.python_version()}"])


def _processor() -> str:
    """The CPU's name, with family and model if they are known: a virtual machine may hide the CPU behind the name."""
    told: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        told.setdefault(key.strip(), value.strip())
    name = told.get("model name", platform.machine())
    numbers = [told[key] for key in ("cpu family", "model") if key in told]
    return f"{name} (family {numbers[0]}, model {numbers[1]})" if len(numbers) == 2 else name


def _gpu() -> list[str]:
    torch = sys.modules.get("torch")
    return [torch.cuda.get_device_name(0)] if torch is not None and torch.cuda.is_available() else []
