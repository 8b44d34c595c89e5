"""Whether a model fits into the memory that is free, before it is loaded."""

import json
from pathlib import Path

_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
_BESIDES = 1.25
"""Memory that loading and answering need, weights included, as a multiple of the weights."""
_PROGRAM = 600_000_000
"""Bytes that the libraries need."""


class OutOfMemory(RuntimeError):
    """The model does not fit; the message says what it needs and what is there."""


def check_fits(folder: Path) -> None:
    """Raises OutOfMemory if the model does not fit. Weights are held as float32."""
    needed, free = needed_bytes(folder), free_bytes()
    if free is not None and needed > free:
        raise OutOfMemory(
            f"The model needs about {needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free. "
            "Wait until others have finished, or generate in a job on the cluster."
        )


def needed_bytes(folder: Path) -> int:
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    config = json.loads((folder / "config.json").read_text())
    size = _BYTES.get(str(config.get("dtype") or config.get("torch_dtype") or "float32"), 4)
    return int(stored / size * 4 * _BESIDES) + _PROGRAM


def free_bytes() -> int | None:
    """Free bytes of the machine and of the cgroup of this process; None if neither is known."""
    found = [_available(), _left_in_group()]
    return min((value for value in found if value is not None), default=None)


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None


def _left_in_group() -> int | None:
    group = Path("/sys/fs/cgroup")
    try:
        most = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return max(0, most - used + int(stat.get("inactive_file", 0)))
    except (OSError, ValueError):  # a missing limit is written as `max`
        return None
