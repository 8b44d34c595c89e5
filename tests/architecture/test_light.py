"""`make test-web` collects its tests without torch. Each of its processes imports all test files, and loading torch takes four processor
seconds."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = ("tests", "trainer", "webapp")
HEAVY = {"torch", "transformers", "peft", "ray", "vllm"}
AT_ONCE = re.compile(r"^(?:import ([\w.]+)|from ([\w.]+) import (?:\(([^)]*)\)|(.+)))", re.MULTILINE)

TEXTS = re.compile(r'"""[\s\S]*?"""')  # among them programs for other processes


def file_of(module: str) -> Path | None:
    place = ROOT.joinpath(*module.split("."))
    found = (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())
    return next(found, None) if module.partition(".")[0] in OURS else None


@cache
def imported_at_once(path: Path) -> frozenset[str]:
    """The modules that the file imports in lines that are not indented, and the packages of which a file of ours is a part."""
    package = path.relative_to(ROOT).parent.parts
    found = {".".join(package[:end]) for end in range(1, len(package) + 1)}
    for plain, module, wrapped, names in AT_ONCE.findall(TEXTS.sub("''", path.read_text())):
        dots = len(module) - len(module.lstrip("."))
        whole = ".".join([*package[: len(package) - dots + 1], *filter(None, [module[dots:]])]) if dots else module
        found.add(plain or whole)
        for name in re.findall(r"^\s*(\w+)|,\s*(\w+)", re.sub(r"#.*", "", wrapped or names)):
            found.add(f"{whole}.{name[0] or name[1]}")
    return frozenset(found)


def ways_to_heavy(path: Path, way: tuple[str, ...], seen: set[Path]) -> Iterator[tuple[str, ...]]:
    if path in seen:
        return
    seen.add(path)
    for module in sorted(imported_at_once(path)):
        if module.partition(".")[0] in HEAVY:
            yield (*way, module)
        elif other := file_of(module):
            yield from ways_to_heavy(other, (*way, module), seen)


def test_what_its_tests_import_as_they_are_collected_loads_no_torch():
    ours = [path for path in ROOT.glob("tests/**/*.py") if path.name.startswith("test_") or path.name == "conftest.py"]
    ours = [path for path in ours if path.relative_to(ROOT).parts[1] not in ("trainer", "benchmarks")]
    seen: set[Path] = set()
    ways = [way for path in sorted(ours) for way in ways_to_heavy(path, (str(path.relative_to(ROOT)),), seen)]
    assert not ways, "\n".join(" -> ".join(way) for way in ways)
    assert len(seen) > len(ours) + 300


def test_a_file_that_loads_torch_is_found_by_what_it_imports():
    ways = list(ways_to_heavy(ROOT / "tests/trainer/loops/conftest.py", (), set()))
    assert any(way[-1] == "torch" and len(way) > 2 for way in ways)


def test_a_reward_worker_loads_no_torch():
    """Each of them is a process. Only workers that sample compute with a model."""
    path = ROOT / "trainer/runners/ray_fleet.py"
    ways = [way for way in ways_to_heavy(path, (path.stem,), set()) if not way[-1].startswith("ray")]
    assert not ways, "\n".join(" -> ".join(way) for way in ways)
