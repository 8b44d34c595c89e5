"""Compares every pin with the list of known faults at osv.dev: `make audit-packages`, or `python -m scripts.audit_packages`.

It sends the names and versions of the locks, which are public, and nothing else. The exit status is 0 if no fault is known, 1 with a list
if some are, and 2 if the service could not be asked: then nothing was compared,
and it says so.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.parse import quote
from urllib.request import Request, urlopen

from packaging.utils import canonicalize_name

from scripts import pins

SERVICE = "https://api.osv.dev"
AT_ONCE = 1000  # packages in one question: the most that the service accepts
TIMEOUT_S = 30
LOCKS = (pins.LOCK, pins.BROUGHT, pins.ROOT / "requirements-vllm.lock", pins.GPU_HASHED, pins.PIP)
NPM = pins.ROOT / "package-lock.json"


class Package(NamedTuple):
    ecosystem: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.ecosystem})"


class Fault(NamedTuple):
    package: Package
    name: str
    since: str
    mended: tuple[str, ...]
    about: str


class NotAsked(Exception):
    """The service is away, or its answer cannot be read; the message says which."""


def main(service: str = SERVICE) -> int:
    packages = pinned()
    try:
        by_id = known(service, packages)
        lines = listed(fault for number, found in sorted(by_id.items()) for fault in told(service, number, found))
    except NotAsked as error:
        print(f"Nothing was compared: {error}", file=sys.stderr)
        return 2
    for line in lines:
        print(line)
    print(f"{len(packages)} pins compared with {service}: {len(lines) or 'no'} known fault{'s' * (len(lines) != 1)}")
    return 1 if lines else 0


def pinned() -> list[Package]:
    """Every package of every lock, each version once. The suffix of a build (`+cpu`) does not belong to the version."""
    found = {
        Package("PyPI", pin.name, pin.version.partition("+")[0])
        for lock in LOCKS
        for pin in pins.pins(_without_digests(lock.read_text()))
    }
    npm = json.loads(NPM.read_text())["packages"]
    found |= {Package("npm", at.rpartition("node_modules/")[2], each["version"]) for at, each in npm.items() if at}
    return sorted(found)


def _without_digests(lock: str) -> str:
    """A lock as pip reads it (`pins.hashed`) without its options and digests."""
    lines = (line.partition(" --hash=")[0] for line in lock.splitlines())
    return "\n".join(line for line in lines if not line.startswith("--"))


def known(service: str, packages: Iterable[Package]) -> Mapping[str, set[Package]]:
    """The ids of faults, with the packages that have them. Raises NotAsked."""
    found: dict[str, set[Package]] = defaultdict(set)
    waiting = [(each, "") for each in packages]
    while waiting:
        now, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
        answers = _asked(f"{service}/v1/querybatch", {"queries": [_query(*each) for each in now]}).get("results")
        if not isinstance(answers, list) or len(answers) != len(now):
            raise NotAsked(f"{service} answered {len(now)} questions with another number of answers")
        for (package, _), answer in zip(now, answers, strict=True):
            for fault in answer.get("vulns") or ():
                found[fault["id"]].add(package)
            if token := answer.get("next_page_token"):
                waiting.append((package, token))
    return found


def told(service: str, number: str, packages: Iterable[Package]) -> Iterator[Fault]:
    """A fault for each package that has it, by its best-known name. A withdrawn fault does not count. Raises NotAsked."""
    fault = _asked(f"{service}/v1/vulns/{quote(number, safe='')}")
    if fault.get("withdrawn"):
        return
    names = [number, *fault.get("aliases", ())]
    name = next((each for each in names if each.startswith("CVE-")), number)
    about = " ".join(str(fault.get("summary") or fault.get("details") or "").split())[:120]
    for package in packages:
        yield Fault(package, name, str(fault.get("published", "?"))[:10], tuple(_mended(fault, package)), about)


def listed(faults: Iterable[Fault]) -> list[str]:
    """A line for each package and fault: since when it is known, the version that mends it, and what it is about.

    A fault may be in the list under several numbers, each with its own text. It gets one line, with the text of the first.
    """
    found: dict[tuple[Package, str], list[Fault]] = defaultdict(list)
    for each in faults:
        found[each.package, each.name].append(each)
    return sorted(map(_line, found.values()))


def _line(same: list[Fault]) -> str:
    package, name, *_, about = same[0]
    since = min(each.since for each in same)
    mended = ", ".join(sorted({version for each in same for version in each.mended})) or "no version yet"
    return f"{package}: {name}, known since {since}, mended in {mended}: {about}"


def _query(package: Package, page: str) -> dict[str, Any]:
    asked = {"package": {"ecosystem": package.ecosystem, "name": package.name}, "version": package.version}
    return asked | ({"page_token": page} if page else {})


def _mended(fault: dict[str, Any], package: Package) -> list[str]:
    """The versions in which the fault is mended, for each of the package's lines of releases."""
    return sorted(
        {
            event["fixed"]
            for each in fault.get("affected", ())
            if canonicalize_name(each.get("package", {}).get("name", "")) == canonicalize_name(package.name)
            for span in each.get("ranges", ())
            if span.get("type") != "GIT"
            for event in span.get("events", ())
            if "fixed" in event
        }
    )


def _asked(address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The service's answer. Raises NotAsked."""
    data = None if body is None else json.dumps(body).encode()
    question = Request(address, data, {"Content-Type": "application/json"})  # noqa: S310 - SERVICE, or a test's own
    try:
        with urlopen(question, timeout=TIMEOUT_S) as answer:  # noqa: S310
            found = json.load(answer)
    except (OSError, HTTPException, ValueError) as error:
        raise NotAsked(f"{address} did not answer as it should ({error})") from error
    if not isinstance(found, dict):
        raise NotAsked(f"{address} answered with something other than an object")
    return found


if __name__ == "__main__":
    sys.exit(main())
