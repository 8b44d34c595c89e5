"""Names that tests import and that images start exist. mypy checks only the program, and a renamed name shows only when a test runs."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from textwrap import dedent

from tests.architecture import sources

ROOT = Path(__file__).parents[2]
PROGRAM = ("webapp", "trainer", "workers", "benchmarks", "scripts", "tests")


@cache
def module(name: str) -> Path | None:
    """The file of a module, or None if there is none."""
    place = ROOT.joinpath(*name.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@cache
def names(path: Path) -> frozenset[str] | None:
    """The names of a module, or None if the module makes names while it runs."""
    text = path.read_text()
    if "def __getattr__" in text or re.search(r"import \*|globals\(\)", text):
        return None
    return frozenset(sources.read(path).bound)


def imports(path: Path) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """What a file imports from modules, and the programs that it contains as strings: a test starts such programs in separate processes."""
    source = sources.read(path)
    yield from source.from_modules
    for _, text in source.strings:
        if "import " in text:
            with suppress(SyntaxError):  # a sentence, or a part of a program
                yield from sources.read_text(dedent(text)).from_modules


def missing(path: Path) -> list[str]:
    """The names that `path` imports from the program and that do not exist."""
    lost = []
    for line, package, imported in imports(path):
        if package.partition(".")[0] not in PROGRAM:
            continue
        place = module(package)
        known = names(place) if place else frozenset()
        for name in imported:
            there = name == "*" or known is None or name in known or module(f"{package}.{name}")
            if not there and not ROOT.joinpath(*package.split("."), name).is_dir():
                lost.append(f"{path.relative_to(ROOT)}:{line}: {package} has no {name}")
    return lost


def test_what_tests_import_is_there():
    files = [path for folder in ("tests", "benchmarks", "scripts") for path in sorted((ROOT / folder).rglob("*.py"))]
    assert [line for path in files for line in missing(path)] == []


def test_what_images_start_is_there():
    """Commands of images name our modules, and nothing else resolves them before a container starts."""
    started = re.compile(r'"((?:webapp|trainer|workers)(?:\.\w+)+):(\w+)"')
    files = sorted((ROOT / "docker").glob("*.Dockerfile"))
    found = [(path.name, *pair) for path in files for pair in started.findall(path.read_text())]
    assert found
    lost = [
        f"{file}: {name}:{each}" for file, name, each in found if not module(name) or each not in names(module(name))
    ]
    assert lost == []
