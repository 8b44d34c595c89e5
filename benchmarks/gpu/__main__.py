"""Compares and measures the trainer on this machine's GPU: `make gpu-check`, or `python -m benchmarks.gpu [PART ...]`.

{parts}

Each part is its own process; none needs a network. A table is printed as the parts end, and one JSON object as the last line, which is also
written to docs/results/gpu-CARD.json once all parts were taken. Without a GPU, nothing is measured and the exit status is {away}; it is 1
if something is wrong. `--device cpu --small` goes through the same code with little of everything: its numbers say nothing.
"""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.rows import MeasureSetting, TakenPart, table
from benchmarks.machine import AWAY, away, describe
from trainer.devices import CHOICE, cards

PARTS = {
    "a": ("objectives", "every objective and head: loss and gradient as on the CPU"),
    "b": ("attention", "packed tree attention = dense, 2k and 16k tokens"),
    "c": ("sampling", "local sampler and vLLM: log-probabilities against the learner; faults are caught"),
    "d": ("steps", "20 steps each: 0.5B and 1.5B full, 7B LoRA, colocated; peak memory against the forecast"),
    "e": ("resume", "a run that is killed goes on as the one that was not"),
    "f": ("throughput", "updates, pushes and decoding, beside what others have published"),
}
LIMIT_S = 530.0
RESULTS = Path(__file__).parents[2] / "docs" / "results"
_MARK = "gpu part: "


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    if options.device == "cpu":
        os.environ[CHOICE] = "cpu"
    else:
        _card_or_away()
    if options.inside:
        return _inside(options)
    ends = time.monotonic() + options.limit_s
    taken = []
    for name in options.parts or PARTS:
        part = _in_own_process(name, options, ends)
        print(table([part]), flush=True)
        taken.append(part)
    record = _record(options, taken)
    if not options.parts and not options.small and options.device == "cuda":
        written = RESULTS / f"gpu-{_slug(record['card'])}.json"
        written.write_text(json.dumps(record, indent=1) + "\n")
        print(f"written to {written}")
    wrong = [f"({part.name})" for part in taken if not part.ok]
    print(f"\n{record['machine']}{', SMALL: these numbers say nothing' if options.small else ''}")
    print(f"Something is wrong in {', '.join(wrong)}" if wrong else "Nothing is wrong")
    print(json.dumps(record))
    return 1 if wrong else 0


def take(name: str, setting: MeasureSetting) -> TakenPart:
    """Take one part in this process."""
    module: Any = importlib.import_module(f"benchmarks.gpu.{PARTS[name][0]}")
    started = time.monotonic()
    rows = module.run(setting)
    return TakenPart(name, rows, time.monotonic() - started)


def _options(arguments: list[str]) -> argparse.Namespace:
    parts = "\n".join(f"  {name}  {about}" for name, (_, about) in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=(__doc__ or "").format(parts=parts, away=AWAY),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="all if none is named")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="little of everything")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="parts that would go on longer are ended")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.parts if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    return options


def _card_or_away() -> None:
    """End the process with one sentence if nothing can be measured."""
    found = cards()
    if not found:
        away("this machine has no NVIDIA GPU. --device cpu --small goes through the same code without one")
    import torch

    if not torch.cuda.is_available():
        away(f"this machine has {found[0]}, but torch {torch.__version__} does not find it: run `make gpu`")


def _inside(options: argparse.Namespace) -> int:
    from trainer.arithmetic import settle_arithmetic

    settle_arithmetic()
    (name,) = options.parts
    with tempfile.TemporaryDirectory(prefix="touchstone-gpu-") as folder:
        part = take(name, MeasureSetting(options.device, options.small, Path(folder)))
    print(_MARK + json.dumps(part.record()), flush=True)
    return 0


def _in_own_process(name: str, options: argparse.Namespace, ends: float) -> TakenPart:
    """Take a part in its own process, so that an error, also one of the device, leaves the other parts alone."""
    left = ends - time.monotonic()
    if left <= 0:
        return TakenPart(name, failed="not begun: the time for all parts was over")
    command = [sys.executable, "-m", "benchmarks.gpu", name, "--inside", "--device", options.device]
    command += ["--small"] if options.small else []
    started = time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        return TakenPart(name, seconds=time.monotonic() - started, failed="ended: the time for all parts was over")
    told = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not told:
        seconds = time.monotonic() - started
        return TakenPart(name, seconds=seconds, failed=f"exit status {done.returncode}; what it said is above")
    return TakenPart.of(name, json.loads(told[-1].removeprefix(_MARK)))


def _record(options: argparse.Namespace, taken: list[TakenPart]) -> dict[str, Any]:
    import torch

    on_card = options.device == "cuda"
    return {
        "machine": describe(),
        "card": torch.cuda.get_device_name(0) if on_card else "",
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "vllm": _version("vllm"),
        "small": options.small,
        "parts": {part.name: part.record() for part in taken},
    }


def _version(package: str) -> str:
    """The version of a package; empty if it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _slug(card: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-") or "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
