"""Writes the parts of this product as CycloneDX 1.6 in JSON: `make sbom`, or `python -m scripts.sbom FILE`.

Python packages come from requirements.lock and requirements.facts.json, the pip that installs them from requirements-pip.sha256, and browser
libraries from package-lock.json. Packages that only tests and style checks need have the scope `excluded`. The same locks give the same file,
because it has no time.
"""

import json
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import pins
from webapp.version import VERSION

NPM = pins.ROOT / "package-lock.json"
US = f"pkg:generic/touchstone@{VERSION}"


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else f"touchstone-{VERSION}.cdx.json")
    found = document(*pins.read(), NPM.read_text(), pins.PIP.read_text())
    path.write_text(json.dumps(found, indent=2) + "\n")
    print(f"{path}: {len(found['components'])} components")


def document(wanted: str, lock: str, facts: pins.Facts, npm: str, pip: str) -> dict[str, Any]:
    """The bill of materials of these locks. `pip`: the text of requirements-pip.sha256."""
    left_out = pins.tools(wanted, lock, facts)
    pinned = {pin.name: pin for pin in pins.pins(lock)}
    python = [_of_python(pin, pin.name not in left_out) for pin in pinned.values()]
    browser = [_of_npm(path, entry) for path, entry in sorted(json.loads(npm)["packages"].items()) if path]
    direct = [_purl(pinned[name]) for name in sorted({canonicalize_name(each.name) for each in pins.wanted(wanted)})]
    installer = _of_pip(pip)
    direct += [each["bom-ref"] for each in (installer, *browser)]
    needs = [{"ref": _purl(pin), "dependsOn": _needs(pin, pinned, facts)} for pin in pinned.values()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, US + lock + npm + pip)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": US,
                "name": "touchstone",
                "version": VERSION,
                "purl": US,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [*python, installer, *browser],
        "dependencies": [
            {"ref": US, "dependsOn": direct},
            *needs,
            *({"ref": each["bom-ref"]} for each in (installer, *browser)),
        ],
    }


def _of_python(pin: pins.Pin, needed: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": _purl(pin),
        "name": pin.name,
        "version": pin.version,
        "purl": _purl(pin),
        "scope": "required" if needed else "excluded",
    }
    if pin.marker:
        found["properties"] = [{"name": "touchstone:marker", "value": str(pin.marker)}]
    return found


def _of_pip(text: str) -> dict[str, Any]:
    """The pip that installs everything else, and stays in the environment; no lock but its own names it."""
    line = next(line for line in text.splitlines() if line.startswith("pip=="))
    pinned, _, digest = line.partition(" --hash=sha256:")
    pin = pins.Pin("pip", pinned.removeprefix("pip=="), None)
    return {**_of_python(pin, needed=True), "hashes": [{"alg": "SHA-256", "content": digest}]}


def _of_npm(path: str, entry: dict[str, Any]) -> dict[str, Any]:
    name = path.rpartition("node_modules/")[2]
    purl = f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"
    algorithm, _, digest = entry["integrity"].partition("-")
    licences = [{"expression": entry["license"]}] if "license" in entry else []
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": entry["version"],
        "purl": purl,
        "scope": "excluded" if entry.get("dev") else "required",
        "licenses": licences,
        "hashes": [{"alg": {"sha512": "SHA-512", "sha1": "SHA-1"}[algorithm], "content": b64decode(digest).hex()}],
    }


def _needs(pin: pins.Pin, pinned: dict[str, pins.Pin], facts: pins.Facts) -> list[str]:
    """The pinned packages that the package's files require, on a machine that we support or for a requested extra."""
    if pin.name in pins.CARRIERS:
        return []
    lines = [line for group in facts[pin.name]["groups"] for line in group["requires"]]
    names = {canonicalize_name(Requirement(line).name) for line in lines}
    return sorted(_purl(pinned[name]) for name in names & pinned.keys() - {pin.name})


def _purl(pin: pins.Pin) -> str:
    return f"pkg:pypi/{pin.name}@{pin.version}"


if __name__ == "__main__":
    main()
