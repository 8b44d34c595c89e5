"""Whether `make gpu` suits this machine. If not, `python3 scripts/check_gpu.py` says in one sentence why and what to do; otherwise which GPUs it
found.

    python3 scripts/check_gpu.py [--cpu]              before anything is fetched: driver, GPUs, C library, space on the disk;
                                                      with --cpu (`make vllm`): whether there is a GPU that the build for CPUs would leave idle
    .venv/bin/python scripts/check_gpu.py --replaced  exit status 0 if the torch of this environment is a build without CUDA
    .venv/bin/python scripts/check_gpu.py --works     after it: whether torch and vLLM find the GPU

Needs nothing but the standard library, and torch with --works. The requirements on driver and GPU are those of CUDA 13, with which the
pinned
torch of requirements.lock is built.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "requirements-gpu.sha256"
DRIVER = (580, 0)  # the first branch that runs CUDA 13
CAPABILITY = (7, 5)  # Turing; CUDA 13 does not support older ones
BFLOAT16 = (8, 0)  # Ampere
GLIBC = (2, 31)
MACHINE = "x86_64"
UNPACKED = 3  # space for fetched and unpacked files: the libraries unpack to about twice their size
ASK = ("name", "driver_version", "compute_cap", "memory.total")
PROCESSOR = "or train on the processor: `make run` needs no GPU"


class Unfit(Exception):
    """The machine does not suit; one sentence says why, and what to do."""


@dataclass(frozen=True)
class GpuCard:
    """A GPU as nvidia-smi describes it. `memory_mib` is None if it does not say."""

    name: str
    driver: tuple[int, ...]
    capability: tuple[int, ...]
    memory_mib: int | None


def cards() -> list[GpuCard]:
    """All GPUs that the driver knows. Raises Unfit if there is no driver, or none that answers."""
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--query-gpu={','.join(ASK)}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=60,
        )
    except FileNotFoundError:
        raise Unfit(
            f"There is no NVIDIA driver here (nvidia-smi is not found): install it, {PROCESSOR}; in a container, start it "
            "with its GPUs."
        ) from None
    except (OSError, subprocess.SubprocessError) as error:
        raise Unfit(f"nvidia-smi does not answer ({error}): restart the machine or its driver, {PROCESSOR}.") from None
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not lines:
        said = (done.stderr.strip() or done.stdout.strip() or "it lists none").splitlines()[0]
        raise Unfit(f"The NVIDIA driver finds no GPU ({said}): mend that first, {PROCESSOR}.")
    return [_card(line) for line in lines]


def _card(line: str) -> GpuCard:
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != len(ASK):
        raise Unfit(f"nvidia-smi gives {line!r}, which is not {', '.join(ASK)}: its driver is too old for CUDA 13.")
    name, driver, capability, memory = parts
    return GpuCard(name, _numbers(driver), _numbers(capability), int(memory) if memory.isdigit() else None)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def incompatibility(
    found: list[GpuCard], machine: str, glibc: tuple[int, ...], free_bytes: int, wanted_bytes: int
) -> str:
    """The sentence that says why the machine does not fit, or "". `wanted_bytes`: of the files to fetch; `free_bytes`: where they are installed."""
    if machine != MACHINE:
        return f"vLLM's builds for GPUs are locked for {MACHINE}, and this machine is {machine}: take another one, {PROCESSOR}."
    if glibc < GLIBC:
        return f"The GPU libraries need glibc {_dotted(GLIBC)} or newer, and this system has {_dotted(glibc)}: upgrade it, {PROCESSOR}."
    driver = min(card.driver for card in found)
    if driver < DRIVER:
        return f"CUDA 13 needs NVIDIA driver {DRIVER[0]} or newer, and this machine has {_dotted(driver)}: upgrade the driver, {PROCESSOR}."
    if all(card.capability < CAPABILITY for card in found):
        least, card = _dotted(CAPABILITY), found[0]
        return f"CUDA 13 needs a GPU of compute capability {least} or newer, and {card.name} has {_dotted(card.capability)}: take another one, {PROCESSOR}."
    if free_bytes < UNPACKED * wanted_bytes:
        need, free = UNPACKED * wanted_bytes / 1e9, free_bytes / 1e9
        return f"`make gpu` needs {need:.0f} GB of disk ({wanted_bytes / 1e9:.1f} GB are fetched and unpacked), and {free:.1f} GB are free here: make room, {PROCESSOR}."
    return ""


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers)) or "unknown"


def wanted_bytes(lock: str) -> int:
    """Bytes of all files of the lock for one machine, as its header gives them."""
    found = re.search(r"^# (\d+) bytes", lock, re.M)
    if found is None:
        raise ValueError(f"{LOCK.name} does not say how large its files are; run python -m scripts.lock")
    return int(found[1])


def described(found: list[GpuCard]) -> str:
    """A line for each GPU."""
    lines = []
    for card in found:
        memory = f", {card.memory_mib / 1024:.0f} GiB" if card.memory_mib is not None else ""
        older = "" if card.capability >= BFLOAT16 else "; it has no bfloat16 arithmetic: train in float32"
        lines.append(f"{card.name}{memory}, driver {_dotted(card.driver)}{older}")
    return "\n".join(lines)


def without_cuda() -> bool:
    """Whether this environment has a torch that was built without CUDA. It is not imported, because that takes seconds."""
    try:
        package = metadata.distribution("torch")
    except metadata.PackageNotFoundError:
        return False
    told = Path(str(package.locate_file("torch/version.py")))
    return told.is_file() and not re.search(r"^cuda(: [^=]+)? = '", told.read_text(), re.M)


def works() -> str:
    """The reason why torch or vLLM cannot use the GPU, or an empty string."""
    from importlib.util import find_spec

    import torch

    if torch.version.cuda is None:
        return "torch is still a build without CUDA: the index that pip asks has no other. Name one that has it with PIP_INDEX_URL."
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no GPU although nvidia-smi does: compare the driver with CUDA {torch.version.cuda}, and see that CUDA_VISIBLE_DEVICES is not empty."
    if find_spec("vllm") is None:
        return "vLLM was not installed: run `make gpu` again and read what pip says."
    return ""


def _fits() -> str:
    folder = LOCK.parent
    glibc = _numbers(platform.libc_ver()[1])
    found = cards()
    free = shutil.disk_usage(folder).free
    if why := incompatibility(found, platform.machine(), glibc, free, wanted_bytes(LOCK.read_text())):
        return why
    print(described(found))
    return ""


def _idle() -> str:
    """The reason why `make vllm` is a mistake here: its learner trains on the processor, and this machine has a GPU."""
    try:
        found = cards()
    except Unfit:
        return ""
    if os.environ.get("TOUCHSTONE_DEVICE") == "cpu":
        return ""
    return (
        f"This machine has {found[0].name}: `make gpu` installs vLLM for it. With `make vllm TOUCHSTONE_DEVICE=cpu` sampler and learner "
        "run on the processor."
    )


def main(arguments: list[str]) -> int:
    if "--replaced" in arguments:
        return 0 if without_cuda() else 1
    try:
        why = works() if "--works" in arguments else _idle() if "--cpu" in arguments else _fits()
    except Unfit as error:
        why = str(error)
    if why:
        print(why, file=sys.stderr)
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
