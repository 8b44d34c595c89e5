"""Seconds from `make run` to its page, once everything is installed: `python -m benchmarks.start [--starts N]`.

The first start, on an empty folder, makes the database and its tables. Later ones find them, as the next `make run` of a
person does. A start is timed from the command to the first answer 200 of the page that a browser is sent to (signing in), then
until the sign-in link is printed and until everything runs. It is stopped with Ctrl-C before the next. The demo is included, as it
is for people, so each start also begins to prepare the demo's model and is stopped during that.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.machine import describe
from tests.stack import ROOT

SERVICES = ("ray", "celery", "beat", "web")
LIMIT_S = 600.0


@dataclass(frozen=True)
class StartTimes:
    """Seconds since the command was given."""

    page: float
    link: float
    all: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--starts", type=int, default=3, help="how many further starts")
    options = parser.parse_args()
    subprocess.run(["make", "setup"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory(prefix="ts-start-", ignore_cleanup_errors=True) as folder:
        var = Path(folder)
        var.chmod(0o755)  # as root the database runs as another user
        starts = [start(var) for _ in range(1 + options.starts)]
    print(describe())
    print(f"{'start':12}{'page':>8}{'link':>8}{'all':>8}   s")
    for number, found in enumerate(starts):
        print(f"{'first' if number == 0 else 'further':12}{found.page:8.1f}{found.link:8.1f}{found.all:8.1f}")
    page = round(statistics.median(found.page for found in starts[1:]), 1)
    print(json.dumps({"second_start": {"ours": page, "peer": None, "unit": "s", "ratio": None}}))


def start(var: Path) -> StartTimes:
    """One `make run` on this folder, and its end."""
    address = var / "run" / "web.json"
    address.unlink(missing_ok=True)  # the file of the start before
    with (var / "up.out").open("w+") as out:
        began = time.monotonic()
        process = subprocess.Popen(
            ["make", "run"],
            cwd=ROOT,
            env={**os.environ, "TOUCHSTONE_VAR": str(var)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            page = until(process, out.name, lambda said: _answers(address)) - began
            link = until(process, out.name, lambda said: "/sign-in/link/" in said) - began
            everything = until(process, out.name, _all_run) - began
        finally:
            os.killpg(process.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
            process.wait(120)
    return StartTimes(page, link, everything)


def until(process: subprocess.Popen[bytes], output: str, holds: Callable[[str], bool]) -> float:
    """The time at which `holds(output)` was true, by the monotonic clock."""
    deadline = time.monotonic() + LIMIT_S
    while not holds(said := Path(output).read_text()):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the start failed:\n{said}")
        time.sleep(0.05)
    return time.monotonic()


def _answers(address: Path) -> bool:
    try:
        url = json.loads(address.read_text())["local"]
        return httpx.get(url, follow_redirects=True, timeout=5, trust_env=False).status_code == 200
    except (OSError, ValueError, httpx.HTTPError):
        return False


def _all_run(said: str) -> bool:
    return all(re.search(rf"^{name:<10}running", said, re.MULTILINE) for name in SERVICES)


if __name__ == "__main__":
    main()
