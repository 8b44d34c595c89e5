"""Compares what pip has installed with the digests of requirements.facts.json: `python -I -S scripts/digests.py REPORT [--index-named]`.

REPORT is what `pip install --report REPORT` wrote. It is for torch and the packages that its build brings along. Their files differ from
index to index, so pip cannot know their digests
beforehand, as it knows those of all other packages (requirements.sha256). The rules:

- a file whose name is known must have the known digest;
- a file that is not known is accepted if it is on this machine's own disk, or if somebody named another index (TORCH_INDEX); it is
  listed with its digest, so that it can be compared by hand. Every other file is refused.

Refused files are deleted again, and the exit status is 1. Nothing that was installed runs before that: pip runs no file of a wheel, and
with
`-I -S` Python reads neither the .pth files of a wheel nor any package, because a wheel may have overwritten even pip's own. So this needs
nothing but the standard library.
"""

import json
import re
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

KINDS = ("purelib", "platlib")
FACTS = Path(__file__).resolve().parent.parent / "requirements.facts.json"


def known(facts: dict[str, Any]) -> dict[str, str]:
    """The digest of each file that the lock knows."""
    return {file: digest for fact in facts.values() for file, digest in fact["sha256"].items()}


def compare(report: dict[str, Any], digests: dict[str, str], index_named: bool) -> tuple[dict[str, str], list[str]]:
    """(refused packages, each with the reason; a line for each file that was accepted without being known)."""
    refused: dict[str, str] = {}
    taken = []
    for entry in report["install"]:
        name, url = entry["metadata"]["name"], urlsplit(entry["download_info"]["url"])
        file, found = unquote(Path(url.path).name), _digest(entry["download_info"])
        if not found:
            refused[name] = f"{file}: pip does not tell its digest"
        elif file in digests and found != digests[file]:
            refused[name] = f"{file}: its digest is {found}, expected is {digests[file]}"
        elif file not in digests and (index_named or url.scheme == "file"):
            taken.append(f"{file}: {found}")
        elif file not in digests:
            refused[name] = f"{file}: not a file that is known here ({found}); TORCH_INDEX names an index to trust"
    return refused, taken


def _digest(told: dict[str, Any]) -> str:
    """The digest of a file, as pip's report gives it. `hashes` is newer than the report's first form, so both are read."""
    archive = told.get("archive_info", {})
    old = archive.get("hash", "")
    return archive.get("hashes", {}).get("sha256") or (old.partition("=")[2] if old.startswith("sha256=") else "")


def remove(names: Iterable[str], prefix: Path) -> None:
    """Deletes the files of these packages below `prefix`, the folder above the interpreter's `bin`."""
    folders = {sysconfig.get_path(kind, vars=dict.fromkeys(("base", "platbase"), str(prefix))) for kind in KINDS}
    unwanted = {_normal(name) for name in names}
    for package in list(metadata.distributions(path=sorted(folders))):
        if _normal(package.metadata["Name"]) not in unwanted:
            continue
        for path in [Path(str(package.locate_file(file))).resolve() for file in package.files or []]:
            if path.is_relative_to(prefix.resolve()):
                path.unlink(missing_ok=True)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(arguments: list[str]) -> int:
    report = json.loads(Path(arguments[0]).read_text())
    refused, taken = compare(report, known(json.loads(FACTS.read_text())), "--index-named" in arguments[1:])
    for line in taken:
        print(f"Taken without a digest to compare with: {line}")
    for line in refused.values():
        print(f"Refused: {line}", file=sys.stderr)
    if refused:
        remove(refused, Path(sys.executable).parent.parent)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
