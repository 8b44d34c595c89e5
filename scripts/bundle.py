"""Makes one file for an installation without a network: `make bundle`, or `python -m scripts.bundle [--out FOLDER] [--key KEY]`.

The tar holds the product without its tests, the browser libraries, the wheels of all that an installation needs on this Python and machine
(the demo's model and the embedding model among them), the docs, a bill of materials, SHA256SUMS of all of it, and the scripts `install` and
`start`. It is not compressed, because wheels are. Every file that the lock lists is compared with its digest before it is packed. With a
key for
ssh-keygen (KEY, a private key file), a signature of the whole tar is written beside it.

Only the wheels are on the disk twice, in FOLDER/wheels and in the tar. The same wheels and commit give the same tar.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import file_digest, sha256
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from packaging.utils import parse_wheel_filename

from scripts import digests, pins, sbom
from webapp.version import VERSION

TESTS = ("tests/", "benchmarks/", ".ci/")  # not part of an installation, as in .dockerignore
VENDOR = "webapp/static/vendor"
SCRIPTS = ("install", "start")
NAMESPACE = "touchstone-bundle"  # a signature for another purpose is not valid here
FOR = f"cp{sys.version_info[0]}{sys.version_info[1]}-{platform.machine()}"


class BundleRefused(Exception):
    """The bundle cannot be made; the message says why in one sentence."""


@dataclass(frozen=True)
class BundleFile:
    """A file of the bundle: its name there, and its content or its path."""

    name: str
    source: Path | bytes
    executable: bool = False


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.bundle", description=__doc__)
    parser.add_argument("--out", type=Path, default=pins.ROOT / "var" / "bundle", help="folder for the bundle")
    parser.add_argument("--key", type=Path, help="private key that ssh-keygen signs with")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        collect(options.out / "wheels")
        fetched = time.monotonic() - began
        path = options.out / f"touchstone-{VERSION}-{FOR}.tar"
        digest = write(
            path, path.stem, [*product(), *whole(options.out / "wheels")], int(_git("log", "-1", "--format=%ct"))
        )
        if options.key:
            sign(path, options.key)
    except BundleRefused as refused:
        print(f"bundle: {refused}", file=sys.stderr)
        return 1
    print(f"{path}: {path.stat().st_size / 1e6:,.0f} MB, SHA-256 {digest}")
    print(f"{time.monotonic() - began:.0f} s, {fetched:.0f} of them for the wheels")
    return 0


def wanted(wanted_text: str, lock: str, facts: pins.Facts, python: str, machine: str) -> list[pins.Pin]:
    """The pins of an installation on this machine and on any patch of this Python; torch among them."""
    left_out = pins.tools(wanted_text, lock, facts)
    here = [at for at in pins.environments() if (at["python_version"], at["platform_machine"]) == (python, machine)]
    return [pin for pin in pins.pins(lock) if pin.name not in left_out and any(map(pin.applies, here))]


def collect(folder: Path) -> None:
    """Fills the folder with the wheels, from the indexes that pip.conf and TORCH_INDEX name. Raises BundleRefused."""
    text, lock, facts = pins.read()
    chosen = wanted(text, lock, facts, f"{sys.version_info[0]}.{sys.version_info[1]}", platform.machine())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(_pip_wheel(), folder)
    listed = folder.parent / "wanted.sha256"
    # without markers, because another patch of this Python may need other wheels
    plain = "".join(f"{pin.name}=={pin.version}\n" for pin in chosen)
    listed.write_text(pins.hashed(plain, {pin.name: facts[pin.name] for pin in chosen}))
    _pip("wheel", "--no-deps", "--no-build-isolation", "--use-pep517", "-w", folder, "-r", listed)
    torch = next(f"{pin.name}=={pin.version}" for pin in chosen if pin.name == pins.APART)
    index = os.environ.get("TORCH_INDEX")
    named = ["--extra-index-url", index] if index else ["-c", pins.BROUGHT]
    _pip("download", "-d", folder, "--only-binary=:all:", "-c", pins.LOCK, *named, torch)
    listed.unlink()


def _pip_wheel() -> Path:
    """The pip that came with this Python. Debian's Python has it in another place."""
    import ensurepip

    places = [Path(ensurepip.__file__).parent / "_bundled", Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or "none")]
    found = [path for place in places for path in sorted(place.glob("pip-*.whl"))]
    if not found:
        raise BundleRefused("this Python came without pip")
    return found[0]


def _pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", *arguments, "-qq", "--disable-pip-version-check"]
    if subprocess.run(command, cwd=pins.ROOT).returncode:
        raise BundleRefused("pip could not get the wheels; its messages are above")


def product() -> Iterator[BundleFile]:
    """All files of this checkout that an installation needs, the browser libraries included. Raises BundleRefused."""
    for name in _git("ls-files", "-z").split("\0"):
        if not name.startswith(TESTS):
            path = pins.ROOT / name
            yield BundleFile(name, path, os.access(path, os.X_OK))
    vendored = sorted(path for path in (pins.ROOT / VENDOR).rglob("*") if path.is_file())
    if pins.ROOT / VENDOR / ".stamp" not in vendored:
        raise BundleRefused("the browser libraries are not there: make setup")
    yield from (BundleFile(path.relative_to(pins.ROOT).as_posix(), path) for path in vendored)
    for name in SCRIPTS:
        yield BundleFile(name, pins.ROOT / "deploy" / "bundle" / name, executable=True)
    bill = sbom.document(*pins.read(), sbom.NPM.read_text(), pins.PIP.read_text())
    yield BundleFile("sbom.cdx.json", f"{json.dumps(bill, indent=2)}\n".encode())


def whole(folder: Path) -> Iterator[BundleFile]:
    """The wheels, after they were compared; the list with which `install` has pip compare them again; and the facts about the bundle."""
    found = {path.name: _digest(path) for path in sorted(folder.glob("*.whl"))}
    unknown = compare(found, json.loads(pins.FACTS.read_text()))
    yield from (BundleFile(f"wheels/{name}", folder / name) for name in found)
    yield BundleFile("wheels.sha256", requirements(found, pins.LOCK.read_text()).encode())
    told = {"name": "touchstone", "version": VERSION, "commit": _commit(), "for": FOR, "not_compared": unknown}
    yield BundleFile("bundle.json", f"{json.dumps(told, indent=2)}\n".encode())


def compare(found: dict[str, str], facts: pins.Facts) -> list[str]:
    """Wheels whose digests are not known beforehand: pip's own, those that were built here from a compared source, and builds of torch from
    another index. Raises BundleRefused for every other wheel without a known digest."""
    known = digests.known(facts)
    built = {file for fact in facts.values() if "source" in fact for group in fact["groups"] for file in group["files"]}
    unknown = []
    for name, digest in found.items():
        package = parse_wheel_filename(name)[0]
        if name in known and digest != known[name]:
            raise BundleRefused(f"{name}: its digest is {digest}, expected is {known[name]}")
        if name not in known:
            if name not in built and package not in ("pip", pins.APART) and not pins.OF_TORCH.match(package):
                raise BundleRefused(f"{name} is not in the lock")
            unknown.append(name)
            print(f"Packed without a digest to compare with: {name}: {digest}")
    return unknown


def requirements(found: dict[str, str], lock: str) -> str:
    """The requirements that `install` gives to pip: the wheels of the bundle, with the lock's markers, and no other file."""
    markers = {pin.name: pin.marker for pin in pins.pins(lock)}
    lines = ["--require-hashes"]
    for name, digest in found.items():
        package, version, _, _ = parse_wheel_filename(name)
        marker = markers.get(package)
        if package != "pip":
            lines.append(f"{package}=={version}{f' ; {marker}' if marker else ''} --hash=sha256:{digest}")
    return "".join(f"{line}\n" for line in lines)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _commit() -> str:
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return _git("rev-parse", "HEAD") + (" with changes" if changed else "")


def _git(*asked: str) -> str:
    done = subprocess.run(["git", *asked], cwd=pins.ROOT, capture_output=True, text=True)
    if done.returncode:
        raise BundleRefused(f"a bundle is made from a git checkout: {done.stderr.strip()}")
    return done.stdout.strip("\0\n")


class _Hashing:
    """A file that is hashed while it is written."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.sum = stream, sha256()

    def write(self, data: bytes) -> int:
        self.sum.update(data)
        return self.stream.write(data)


def write(path: Path, top: str, entries: Iterable[BundleFile], mtime: int) -> str:
    """Writes the tar with SHA256SUMS as its last file, and returns the tar's digest. All files have the same time, because browsers cache
    by it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    sums: dict[str, str] = {}
    with partial.open("wb") as stream:
        hashing: Any = _Hashing(stream)
        with tarfile.open(fileobj=hashing, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for entry in entries:
                if entry.name in sums or "\n" in entry.name:
                    raise BundleRefused(f"{entry.name!r} cannot be packed, or is there twice")
                sums[entry.name] = _add(tar, top, entry, mtime)
            listed = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
            _add(tar, top, BundleFile("SHA256SUMS", listed.encode()), mtime)
    partial.replace(path)
    return str(hashing.sum.hexdigest())


def _add(tar: tarfile.TarFile, top: str, entry: BundleFile, mtime: int) -> str:
    """Packs a file, and returns its digest."""
    info = tarfile.TarInfo(f"{top}/{entry.name}")
    info.mtime = mtime
    info.mode = 0o755 if entry.executable else 0o644
    if isinstance(entry.source, bytes):
        info.size = len(entry.source)
        tar.addfile(info, BytesIO(entry.source))
        return sha256(entry.source).hexdigest()
    with entry.source.open("rb") as stream:
        info.size = os.fstat(stream.fileno()).st_size
        reading: Any = _Reading(stream)
        tar.addfile(info, reading)
        return str(reading.sum.hexdigest())


class _Reading:
    """A file that is hashed while it is read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.sum = stream, sha256()

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.sum.update(data)
        return data


def sign(path: Path, key: Path) -> None:
    """Writes PATH.sig. Raises BundleRefused."""
    Path(f"{path}.sig").unlink(missing_ok=True)  # ssh-keygen would ask
    if subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", NAMESPACE, path]).returncode:
        raise BundleRefused(f"ssh-keygen could not sign with {key}; its messages are above")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
