"""Every measurement in turn, each in a process of its own: `make bench`, or `python -m benchmarks [NAME ...]`.

Each starts the services it needs in a temporary folder and prints its own table. At the end comes one table of all, and
as the last line one JSON object `{name: {ours, peer, unit, ratio}}`. Exit status 1 if a measurement failed; the others
are still taken and printed.
"""

import argparse
import json
import subprocess
import sys
import time
from typing import Any

from benchmarks.machine import describe

MODULES = {
    "launch": "from the launch of a run to its first point",
    "ingest": "events stored per second",
    "datasets": "import and reads of a large dataset",
    "workbench": "an annotator's wait for the next task, in a browser",
    "answers": "export of answers, and the people of a large project",
    "annotation": "people annotating: submissions per second and latency",
    "trainer": "a training step: speed and memory, against TRL",
    "runners": "synchronous and asynchronous runs of the same work, and what the simulator foretells",
    "judges": "verdicts per second through an endpoint, against a bare loop and autorubric",
    "local_judges": "the judge in the box, against one generation per criterion",
}

Results = dict[str, dict[str, Any]]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(MODULES)}; all if left out")
    names = parser.parse_args(arguments).names or list(MODULES)
    if unknown := [name for name in names if name not in MODULES]:
        parser.error(f"there is no measurement {unknown[0]!r}; there are {', '.join(MODULES)}")
    machine = describe()  # before anything is measured: its load is then that of the others on this machine
    results: Results = {}
    failed = []
    for name in names:
        print(f"== {name}: {MODULES[name]}", flush=True)
        started = time.monotonic()
        found = measure(name)
        print(f"{name} took {time.monotonic() - started:.0f} s", flush=True)
        if found is None:
            failed.append(name)
        results |= found or {}
    print(f"\n{machine}\n{table(results)}")
    for name in failed:
        print(f"{name} failed; what it said is above")
    print(json.dumps(results))
    return 1 if failed else 0


def measure(name: str) -> Results | None:
    """Runs `benchmarks.NAME`, shows what it prints as it comes, and takes its last line; None if it failed."""
    last = ""
    with subprocess.Popen([sys.executable, "-m", f"benchmarks.{name}"], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if last:
                print(last, flush=True)
            last = line.rstrip("\n")
    if process.returncode == 0:
        found: Results = json.loads(last)
        return found
    print(last, flush=True)
    return None


def table(results: Results) -> str:
    """A line per measurement; a dash where there is no peer to compare with."""
    rows = [("", "ours", "peer", "ratio", "unit")]
    for name, found in results.items():
        rows.append((name, _number(found["ours"]), _number(found["peer"]), _number(found["ratio"]), found["unit"]))
    return "\n".join(f"{name:26}{ours:>12}{peer:>12}{ratio:>8}   {unit}" for name, ours, peer, ratio, unit in rows)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
