"""Rooms have an order, which is in pyproject.toml, and a line in CONTRIBUTING.md: who looks for a room finds each there, also a new one."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDERS = ("webapp", "workers", "trainer")
FOUND_BY_DJANGO = {"apps", "management", "migrations", "templatetags"}
"""Django looks for them by these names, so a contract need not place them."""
ALIKE = ("webapp.datasets.formats", "webapp.evaluation.recipes", "trainer.objectives")
"""The line of the package says what each of its rooms is."""


def contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return [contract for contract in settings["contracts"] if contract["type"] == "layers"]


def without_order(root: Path, layers: Iterable[dict[str, Any]]) -> list[str]:
    """Apps whose modules are in no exhaustive contract, and rooms beside another room that no contract of their package names."""
    layers = list(layers)
    whole = {package for each in layers if each.get("exhaustive") for package in each.get("containers", [])}
    named = {
        f"{package}.{name}"
        for each in layers
        for package in each.get("containers", [])
        for layer in each["layers"]
        for name in layer.replace("|", " ").split()
    }
    missing = [
        f"webapp.{app}" for app, modules in apps(root).items() if len(modules) > 1 and f"webapp.{app}" not in whole
    ]
    for package, rooms in neighbours(root).items():
        missing += sorted(f"{package}.{room}" for room in rooms if f"{package}.{room}" not in named)
    return missing


def apps(root: Path) -> dict[str, set[str]]:
    """{app: its modules and rooms}"""
    found = {
        folder.name: {file.stem for file in folder.glob("*.py")} | rooms_in(folder)
        for folder in folders(root / "webapp")
    }
    return {app: modules - FOUND_BY_DJANGO - {"__init__"} for app, modules in found.items()}


def neighbours(root: Path) -> dict[str, set[str]]:
    """{package: its rooms}, for packages with two or more"""
    inside = [path for name in FOLDERS for path in (root / name, *(root / name).rglob("*")) if path.is_dir()]
    found = {".".join(path.relative_to(root).parts): rooms_in(path) for path in inside}
    return {package: rooms for package, rooms in sorted(found.items()) if len(rooms) > 1}


def rooms_in(folder: Path) -> set[str]:
    return {each.name for each in folders(folder)} - FOUND_BY_DJANGO


def folders(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if each.is_dir() and any(each.rglob("*.py"))]


def test_every_room_has_a_place_in_an_order():
    assert without_order(ROOT, contracts()) == []


def test_no_contract_leaves_out_more_than_django_finds_by_its_name():
    left_out = {name for each in contracts() for name in each.get("exhaustive_ignores", [])}
    assert left_out <= FOUND_BY_DJANGO


def test_a_new_room_needs_a_place(tmp_path):
    for file in (
        "webapp/old/low/rows.py",
        "webapp/old/high/views.py",
        "webapp/old/added/views.py",
        "webapp/fresh/models.py",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / "webapp/fresh/views.py").touch()
    (tmp_path / "webapp/old/migrations").mkdir()
    order = [
        {"containers": ["webapp"], "exhaustive": True, "layers": ["fresh", "old"]},
        {"containers": ["webapp.old"], "exhaustive": True, "layers": ["high", "low"]},
    ]
    assert without_order(tmp_path, order) == ["webapp.fresh", "webapp.old.added"]
    order[1]["layers"] = ["high | added", "low"]
    assert without_order(tmp_path, [*order, {"containers": ["webapp.fresh"], "exhaustive": True, "layers": []}]) == []


def drawn(text: str) -> set[str]:
    """The folders in the pictures of the house, as packages."""
    found, above = set[str](), list[tuple[int, str]]()
    for line in re.findall(r"^ *[a-z_/]+/.*$", "\n".join(re.findall(r"^```\n(.*?)^```", text, re.M | re.S)), re.M):
        depth = len(line) - len(line.lstrip())
        above = [each for each in above if each[0] < depth]
        inside = f"{above[-1][1]}." if above else ""
        names = re.match(r"(?: *[a-z_/]+/)+", line)
        rooms = [f"{inside}{name.strip('/').replace('/', '.')}" for name in (names[0] if names else "").split()]
        found.update(rooms)
        above += [(depth, rooms[0])] if rooms else []
    return found


def test_every_room_has_a_line_in_the_picture_of_the_house():
    known = drawn((ROOT / "CONTRIBUTING.md").read_text())
    rooms = {
        f"{package}.{room}" for package, rooms in neighbours(ROOT).items() for room in rooms if package not in ALIKE
    }
    assert sorted(rooms - known) == []
    assert "webapp.accounts.sign_in" in known and "webapp.experiments.launch" in known
