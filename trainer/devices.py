"""Chooses the device that computes, and finds a GPU that would stay unused. Imports no torch, because the web side calls it too."""

import os
import re
from importlib import metadata
from pathlib import Path

CHOICE = "TOUCHSTONE_DEVICE"
"""Environment variable: `cpu` keeps everything on the CPU, with any GPU; if absent, a GPU is used if torch finds one."""
REMEDY = f"run `make gpu`, or set {CHOICE}=cpu to train on the processor on purpose"


def cards(root: Path = Path("/")) -> list[str]:
    """Names of this machine's NVIDIA GPUs as the driver reports them, independent of torch."""
    told = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
    names = [re.search(r"^Model:\s*(.+?)\s*$", file.read_text(), re.M) for file in told]
    found = [name[1] if name else "an NVIDIA GPU" for name in names]
    return found or ["an NVIDIA GPU" for _ in (root / "dev").glob("nvidia[0-9]")]


def on_purpose() -> str:
    """The reason why this process shall compute on the CPU even if its machine has a GPU; empty if it shall not."""
    if os.environ.get(CHOICE) == "cpu":
        return f"{CHOICE} says so"
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1", "NoDevFiles"):
        return "no GPU was given to this process (CUDA_VISIBLE_DEVICES is empty)"
    return ""


def built_for_cuda() -> bool | None:
    """Whether the torch of this environment is built for CUDA; None if torch is not installed. torch is not imported."""
    try:
        package = metadata.distribution("torch")
    except metadata.PackageNotFoundError:
        return None
    told = Path(str(package.locate_file("torch/version.py")))
    if not told.is_file():
        return None
    return bool(re.search(r"^cuda(: [^=]+)? = '", told.read_text(), re.M))


def idle(found: list[str], cuda: bool | None) -> str:
    """The problem and its remedy if a run would leave the GPU unused because torch is a build without CUDA; else empty."""
    if not found or cuda is not False or on_purpose():
        return ""
    return f"this machine has {found[0]}, but torch is a build without CUDA and would train on the processor: {REMEDY}"
