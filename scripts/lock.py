"""Makes the locks: requirements.lock from requirements.in, requirements.facts.json from what the package index says about each pin, and
requirements.sha256 and requirements-torch.lock from both. From requirements-gpu.in it makes requirements-gpu.sha256, which `make gpu` adds.
requirements-pip.sha256 is the pip that installs them.

    python -m scripts.lock [--upgrade-package NAME]...

Pins stay as they are, except those of named packages and those that requirements.in forbids. Needs the package index (some minutes,
a few MB: only packages that have no wheel are downloaded). uv resolves for all machines at once; an
installation needs only pip. pip is asked without this machine's own settings, because some of them offer builds that others cannot get.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import check_gpu, check_python, pins

TOOLS = ("pip==26.3", "uv==0.13.9")
AT_ONCE = 2  # pip's dry runs need much of the processor


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.lock", description=__doc__)
    parser.add_argument(
        "--upgrade-package", action="append", default=[], metavar="NAME", help="take the newest that fits"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tools = Path(folder) / "tools" / "bin"
        venv.create(tools.parent, with_pip=True)
        subprocess.run([tools / "python", "-m", "pip", "install", "-q", *TOOLS], check=True)
        lock = resolve(tools / "uv", options.upgrade_package)
        facts = ask(tools / "python", lock, Path(folder))
        of_pip = pins.of_pip(TOOLS[0], _digest_of_pip(tools / "python", Path(folder)))
        on_gpus = pins.on_gpus(resolve_on_gpus(tools / "uv", lock, facts, Path(folder)), lock)
    if found := pins.problems(pins.WANTED.read_text(), lock, facts):
        sys.exit("\n".join(["Nothing is written, because this lock has problems:", *found]))
    pins.LOCK.write_text(lock)
    pins.FACTS.write_text(json.dumps(facts, indent=0, sort_keys=True) + "\n")
    pins.HASHED.write_text(pins.hashed(lock, facts))
    pins.BROUGHT.write_text(pins.brought(facts))
    pins.PIP.write_text(of_pip)
    pins.GPU_HASHED.write_text(on_gpus)
    print(f"{len(facts)} pins in {pins.LOCK.name}, what they need in {pins.FACTS.name}, digests in {pins.HASHED.name}")


def resolve(uv: Path, upgrades: list[str]) -> str:
    """The new lock: a line for each pin, with a marker only if some machine does not need it."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / pins.LOCK.name  # uv keeps the pins that it finds in its output file
        output.write_text(pins.LOCK.read_text() if pins.LOCK.exists() else "")
        command = [
            str(uv),
            "pip",
            "compile",
            "--quiet",
            "--universal",
            "--no-header",
            "--no-annotate",
            "--no-emit-index-url",
        ]
        command += [
            f"--python-version={'.'.join(map(str, check_python.OLDEST))}",
            *(f"--upgrade-package={name}" for name in upgrades),
        ]
        subprocess.run([*command, pins.WANTED.name, "-o", str(output)], cwd=pins.ROOT, check=True)
        return "".join(f"{_short(pin)}\n" for pin in pins.pins(output.read_text()))


PROJECT = """[project]
name = "on-gpus"
version = "0"
requires-python = ">={oldest},<{newest}"
[tool.uv]
environments = ["sys_platform == 'linux' and platform_machine == '{machine}'"]
"""


def resolve_on_gpus(uv: Path, lock: str, facts: pins.Facts, folder: Path) -> dict[str, Any]:
    """A lock of PEP 751 of requirements-gpu.in beside the pins of the lock, with torch and all that its build brings.

    It is made in a folder of its own, because this project's settings tell uv that torch brings nothing.
    """
    there = folder / "on-gpus"
    there.mkdir()
    newest = f"{check_python.NEWEST[0]}.{check_python.NEWEST[1] + 1}"
    project = PROJECT.format(oldest=".".join(map(str, check_python.OLDEST)), newest=newest, machine=check_gpu.MACHINE)
    (there / "pyproject.toml").write_text(project)
    (there / "wanted.in").write_text(pins.ON_GPUS.read_text())
    # torch leaves the versions of its bindings open, and vLLM's other needs do not
    brought = [line for line in pins.brought(facts).splitlines() if not line.startswith("cuda-")]
    (there / "pinned.txt").write_text(lock + "\n".join(brought) + "\n")
    kept = [line for line in lock.splitlines() if line.partition("==")[0] in pins.BROKEN_FOR_GPUS]
    (there / "kept.txt").write_text("\n".join(kept) + "\n")
    command = [str(uv), "pip", "compile", "--quiet", "--universal", "--only-binary=:all:", "--format=pylock.toml"]
    command += [
        f"--python-version={'.'.join(map(str, check_python.OLDEST))}",
        "-c",
        "pinned.txt",
        "--override",
        "kept.txt",
    ]
    subprocess.run([*command, "wanted.in", "-o", "pylock.toml"], cwd=there, check=True)
    return tomllib.loads((there / "pylock.toml").read_text())


def _short(pin: pins.Pin) -> str:
    """uv repeats in each marker which machines we support. This leaves only what differs between them, and no marker if nothing does."""
    line = f"{pin.name}=={pin.version}"
    where = [here for here in pins.environments() if pin.applies(here)]
    if len(where) == len(list(pins.environments())):
        return line
    parts = str(pin.marker).split(" and ")
    for count in range(1, len(parts) + 1):
        marker = " and ".join(parts[:count]) if _balanced(parts[:count]) else ""
        if marker and [here for here in pins.environments() if Marker(marker).evaluate(here)] == where:
            return f"{line} ; {marker}".replace('"', "'")
    return f"{line} ; {pin.marker}"


def _balanced(parts: list[str]) -> bool:
    text = "".join(parts)
    return text.count("(") == text.count(")")


def ask(python: Path, lock: str, folder: Path) -> pins.Facts:
    """The results of pip for each pin on each Python and machine: the file, its requirements, and the Pythons for which it is."""
    machines = [(version, machine) for version in pins.PYTHONS for machine in pins.MACHINES]
    sources = _sources(python, lock, folder)

    def report(of: tuple[str, str]) -> list[dict[str, Any]]:
        return _report(python, lock, sources, folder, *of)

    def brought(of: tuple[str, str]) -> list[dict[str, Any]]:
        return _brought(python, lock, folder, *of)

    facts: pins.Facts = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for found in pool.map(report, machines):
            for entry in found:
                _note(facts, entry, sources)
        for found in pool.map(brought, machines):
            facts[pins.APART]["sha256"].update(map(_digest, found))
            facts[pins.APART].setdefault("brings", {}).update(
                (_name(entry), entry["metadata"]["version"]) for entry in found
            )
    _trim(facts)
    return facts


def _sources(python: Path, lock: str, folder: Path) -> dict[str, str]:
    """The pins that have no wheel, and the wheel that is built from each, which must be one for any machine."""
    names = {pin.name: f"{pin.name}=={pin.version}" for pin in pins.pins(lock)}
    found: dict[str, str] = {}
    while True:
        done = _dry_run(python, lock, found, folder / "probe", pins.PYTHONS[0], pins.MACHINES[0])
        if done.returncode == 0:
            return found
        missing = next(
            (name for name, pin in names.items() if name not in found and f"found for {pin}\n" in done.stderr), None
        )
        if missing is None:
            sys.exit(done.stderr)
        built = folder / "built" / missing
        subprocess.run(
            [python, "-m", "pip", "--isolated", "wheel", "-q", "--no-deps", "-w", built, names[missing]], check=True
        )
        found[missing] = next(built.iterdir()).name


def _report(
    python: Path, lock: str, sources: dict[str, str], folder: Path, version: str, machine: str
) -> list[dict[str, Any]]:
    target = folder / f"{version.replace('.', '')}-{machine}"
    done = _dry_run(python, lock, sources, target, version, machine)
    if done.returncode:
        sys.exit(f"CPython {version}, {machine}: {done.stderr}")
    listed: list[dict[str, Any]] = json.loads(target.with_suffix(".json").read_text())["install"]
    return listed


def _brought(python: Path, lock: str, folder: Path, version: str, machine: str) -> list[dict[str, Any]]:
    """The files that torch's build on the index brings along. They are not pins, because builds of other indexes bring others."""
    target = folder / f"{pins.APART}-{version.replace('.', '')}-{machine}"
    pinned = target.with_suffix(".lock")
    pinned.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in pins.pins(lock)))
    asked = ["-c", str(pinned), next(line for line in lock.splitlines() if line.startswith(f"{pins.APART}=="))]
    done = subprocess.run(
        [*_pip(python, target, version, machine), "--only-binary=:all:", *asked], capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"CPython {version}, {machine}, {pins.APART}: {done.stderr}")
    listed: list[dict[str, Any]] = json.loads(target.with_suffix(".json").read_text())["install"]
    return [entry for entry in listed if pins.OF_TORCH.match(_name(entry))]


def _digest_of_pip(python: Path, folder: Path) -> str:
    report = folder / "pip.json"
    command = [str(python), "-m", "pip", "--isolated", "install", "-q", "--dry-run", "--ignore-installed", "--no-deps"]
    subprocess.run([*command, "--only-binary=:all:", "--report", str(report), TOOLS[0]], check=True)
    return _digest(json.loads(report.read_text())["install"][0])[1]


def _dry_run(
    python: Path, lock: str, sources: dict[str, str], target: Path, version: str, machine: str
) -> subprocess.CompletedProcess[str]:
    """Has pip write to `target`.json what it would install there. pip evaluates markers for this machine, so it gets only the lines that
    apply."""
    listed = target.with_suffix(".txt")
    here = [at for at in pins.environments() if (at["python_version"], at["platform_machine"]) == (version, machine)]
    wanted = [f"{pin.name}=={pin.version}\n" for pin in pins.pins(lock) if any(map(pin.applies, here))]
    listed.write_text("".join(wanted))
    command = [*_pip(python, target, version, machine), "--no-deps", "-r", str(listed)]
    command += ["--only-binary=:all:", *(f"--no-binary={name}" for name in sources)]
    return subprocess.run(command, capture_output=True, text=True)


def _pip(python: Path, target: Path, version: str, machine: str) -> list[str]:
    command = [str(python), "-m", "pip", "--isolated", "install", "-q", "--dry-run", "--ignore-installed"]
    command += ["--report", str(target.with_suffix(".json")), "--target", str(target)]
    command += [f"--python-version={version}", "--implementation=cp", f"--abi=cp{version.replace('.', '')}"]
    command += ["--abi=abi3", "--abi=none", f"--platform=manylinux2014_{machine}"]
    return command + [f"--platform=manylinux_2_{minor}_{machine}" for minor in range(pins.GLIBC, 16, -1)]


def _note(facts: pins.Facts, entry: dict[str, Any], sources: dict[str, str]) -> None:
    """Notes a file; files with the same requirements are in one group."""
    metadata = entry["metadata"]
    name = _name(entry)
    file, digest = _digest(entry)
    requires = sorted(metadata.get("requires_dist", []))
    fact = facts.setdefault(name, {"version": metadata["version"], "groups": [], "sha256": {}})
    fact["sha256"][file] = digest
    if name in sources:
        fact["source"] = file
        file = sources[name]
    group = {"python": metadata.get("requires_python", ""), "requires": requires, "files": [file]}
    for other in fact["groups"]:
        if (other["python"], other["requires"]) == (group["python"], group["requires"]):
            other["files"] = sorted({*other["files"], file})
            return
    fact["groups"].append(group)


def _name(entry: dict[str, Any]) -> str:
    return canonicalize_name(entry["metadata"]["name"])


def _digest(entry: dict[str, Any]) -> tuple[str, str]:
    """The file's name, and its SHA-256 digest from the index."""
    told = entry["download_info"]
    return unquote(Path(urlsplit(told["url"]).path).name), told["archive_info"]["hashes"]["sha256"]


def _trim(facts: pins.Facts) -> None:
    """Drops requirements that apply to no machine of ours, or only to extras that nobody asks for."""
    asked: dict[str, set[str]] = {name: {""} for name in facts}
    new = pins.wanted(pins.WANTED.read_text())
    while new:
        for requirement in new:
            asked.setdefault(canonicalize_name(requirement.name), {""}).update(requirement.extras)
        known = {name: set(extras) for name, extras in asked.items()}
        new = [
            requirement
            for name, fact in facts.items()
            for group in fact["groups"]
            for requirement in map(Requirement, _applying(group["requires"], asked[name]))
            if not requirement.extras <= known.get(canonicalize_name(requirement.name), set())
        ]
    for name, fact in facts.items():
        for group in fact["groups"]:
            group["requires"] = _applying(group["requires"], asked[name])


def _applying(requires: list[str], extras: set[str]) -> list[str]:
    return [line for line in requires if _applies(Requirement(line).marker, extras)]


def _applies(marker: Marker | None, extras: set[str]) -> bool:
    if marker is None:
        return True
    return any(marker.evaluate({**here, "extra": extra}) for here in pins.environments() for extra in extras)


if __name__ == "__main__":
    main()
