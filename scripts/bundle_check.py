"""Installs a bundle without a network, and waits for the first point of the demo's run: `make bundle-check`, or
`python -m scripts.bundle_check [BUNDLE] [--python PROGRAM]`. Prints the seconds of each part, and the processor seconds of everything. The
exit status is 1 if it takes more than five minutes (`--limit`).

The walk is made by a user without rights, in a network namespace that has only the loopback device. The user unpacks the bundle, installs
it
with the distribution's Python, starts it, signs in by the printed link, finds the demo's data and projects, waits for the first point of
the run, and ends everything with Ctrl-C. Needs root, for the namespace and the user. Without BUNDLE, the newest one of `make bundle` is
used.
"""

import argparse
import fcntl
import importlib.util
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 300
DATASETS, PROJECTS = {"Demo prompts", "Demo preferences"}, 2
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.bundle_check", description=__doc__)
    parser.add_argument("bundle", nargs="?", type=Path, help="the tar; default: the newest one in var/bundle")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python that installs the bundle")
    parser.add_argument(
        "--limit", type=float, default=LIMIT_S, help="seconds; give more on a machine that is busy with other things"
    )
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        return inside(options.bundle, options.python, options.limit)
    found = sorted((ROOT / "var" / "bundle").glob("*.tar"), key=lambda path: path.stat().st_mtime)
    if options.bundle is None and not found:
        parser.error("there is no bundle: make bundle")
    if os.geteuid() != 0:
        parser.error("only root can make a network namespace")
    bundle = (options.bundle or found[-1]).resolve()
    command = [sys.executable, "-m", "scripts.bundle_check", bundle, "--python", options.python, "--inside"]
    command += ["--limit", str(options.limit)]
    return subprocess.run(["unshare", "--net", *command], cwd=ROOT).returncode


def newcomers() -> ModuleType:
    """The walk of CI's newcomer: makes a user, starts, signs in, stops."""
    spec = importlib.util.spec_from_file_location("newcomer", ROOT / ".ci" / "newcomer.py")
    assert spec and spec.loader  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inside(bundle: Path, python: str, limit_s: float) -> int:
    """The part that runs in the namespace."""
    loopback_alone()
    newcomer = newcomers()
    customer = newcomer.Newcomer()
    customer.command = ("./start",)
    customer.clone = customer.home / bundle.stem
    places = {"HOME": str(customer.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": tempfile.gettempdir()}
    customer.environment = lambda: places
    try:
        took = walk(newcomer, customer, bundle, python, limit_s)
    except newcomer.Failed as failed:
        said = customer.output.read_text(errors="replace") if customer.output.exists() else ""
        logs = [
            f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in customer.clone.glob("var/log/*.log")
        ]
        print("\n".join([f"bundle: {failed}", "--- its output:", said, *logs]), file=sys.stderr)
        return 1
    finally:
        customer.leave()
    before = 0.0
    for name, until in took.items():
        print(f"{name:48}{until - before:8.1f} s{until:9.1f} s")
        before = until
    print(f"without network, as a user without rights, {python}: {before:.0f} s in all; {limit_s:.0f} s are allowed")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{used.ru_utime + used.ru_stime:.0f} s of a processor until everything had stopped, {os.cpu_count()} processors"
    )
    return 0 if before <= limit_s else 1


def loopback_alone() -> None:
    """Brings the loopback device up. Exits if there is another device, or a route to another machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        devices = [name for _, name in socket.if_nameindex()]
        if devices != ["lo"]:
            sys.exit(f"this namespace has a network: there are {devices}")


def walk(newcomer: ModuleType, customer: Any, bundle: Path, python: str, limit_s: float) -> dict[str, float]:
    """Seconds since the beginning at which each part was done."""
    began = time.monotonic()
    took: dict[str, float] = {}

    def done(name: str) -> None:
        took[name] = time.monotonic() - began

    with bundle.open("rb") as stream:  # the user may not be allowed to read it in its place
        run_as(newcomer, customer, customer.home, "tar", "-xf", "-", stdin=stream)
    done("unpacked")
    run_as(newcomer, customer, customer.clone, "./install", python)
    done("compared and installed")
    started = newcomer.Run(customer)
    started.page(limit_s)
    done("started, its first page is there")
    link = started.until(r"^(http\S+/sign-in/link/\S+)$", limit_s)
    browser = newcomer.sign_in(link)
    done("signed in, the demo's page is there")
    started.until(r"^data      done", limit_s)
    base = link.partition("/sign-in/")[0]
    datasets = {each["name"] for each in ask(newcomer, browser, f"{base}/api/v1/datasets")}
    projects = len(ask(newcomer, browser, f"{base}/api/v1/projects"))
    if not datasets >= DATASETS or projects != PROJECTS:
        raise newcomer.Failed(f"the demo is not there: {datasets}, {projects} projects")
    done("the demo's data and projects are there")
    started.until(r"^demo      done", limit_s)
    done("the model is prepared, the run launched")
    wait_for_point(newcomer, browser, base, limit_s)
    done("the run's first point is there")
    started.stop()
    return took


def run_as(newcomer: ModuleType, customer: Any, folder: Path, *command: str, stdin: IO[bytes] | None = None) -> None:
    done = subprocess.run(
        command,
        stdin=stdin or subprocess.DEVNULL,
        cwd=folder,
        env=customer.environment(),
        preexec_fn=customer.become,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout, end="", flush=True)
    if done.returncode:
        raise newcomer.Failed(f"{command[0]} ended with {done.returncode}")


def ask(newcomer: ModuleType, browser: Any, address: str) -> list[dict[str, Any]]:
    status, text = newcomer.get(browser, address)
    if status != 200:
        raise newcomer.Failed(f"{address} answered {status}: {text[:500]}")
    found = json.loads(text)
    items: list[dict[str, Any]] = found["items"] if isinstance(found, dict) else found
    return items


def wait_for_point(newcomer: ModuleType, browser: Any, base: str, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        [run] = ask(newcomer, browser, f"{base}/api/v1/runs")
        if run["first_metric_at"]:
            return
        if run["state"] in ("failed", "stopped"):
            raise newcomer.Failed(f"the run is {run['state']}: {run['state_reason']}")
        time.sleep(0.5)
    raise newcomer.Failed("the run has no point")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
