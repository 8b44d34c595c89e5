"""Which device computes, and whether that is what somebody wants. Imports no torch: the web side asks, too."""

import os
import re
from importlib import metadata
from pathlib import Path

CHOICE = "TOUCHSTONE_DEVICE"
"""Environment: `cpu` keeps everything on the processor, whatever cards there are; absent: a GPU where torch finds one."""
REMEDY = f"run `make gpu`, or set {CHOICE}=cpu to train on the processor on purpose"


def cards(root: Path = Path("/")) -> list[str]:
    """Names of this machine's NVIDIA GPUs as the driver tells them, whatever torch makes of them."""
    told = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
    names = [re.search(r"^Model:\s*(.+?)\s*$", file.read_text(), re.M) for file in told]
    found = [name[1] if name else "an NVIDIA GPU" for name in names]
    return found or ["an NVIDIA GPU" for _ in (root / "dev").glob("nvidia[0-9]")]


def on_purpose() -> str:
    """Why this process is to compute on the processor although its machine may have cards; empty where it is not."""
    if os.environ.get(CHOICE) == "cpu":
        return f"{CHOICE} says so"
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1", "NoDevFiles"):
        return "no GPU was given to this process (CUDA_VISIBLE_DEVICES is empty)"
    return ""


def built_for_cuda() -> bool | None:
    """Whether the torch of this environment knows CUDA; None where there is no torch. It is not imported."""
    try:
        package = metadata.distribution("torch")
    except metadata.PackageNotFoundError:
        return None
    told = Path(str(package.locate_file("torch/version.py")))
    if not told.is_file():
        return None
    return bool(re.search(r"^cuda(: [^=]+)? = '", told.read_text(), re.M))


def idle(found: list[str], cuda: bool | None) -> str:
    """What to say and do where a run would leave the card idle for want of a build of torch for it; empty where it would not."""
    if not found or cuda is not False or on_purpose():
        return ""
    return f"this machine has {found[0]}, but torch is a build without CUDA and would train on the processor: {REMEDY}"
