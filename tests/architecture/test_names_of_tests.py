"""Names that tests import and that images start exist. mypy checks only the program, and a renamed name shows only when a test runs."""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
PROGRAM = ("webapp", "trainer", "workers", "benchmarks", "scripts", "tests")


@cache
def module(name: str) -> Path | None:
    """The file of a module, or None if there is none."""
    place = ROOT.joinpath(*name.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@cache
def names(path: Path) -> frozenset[str] | None:
    """The names at the top of a module, or None if the module makes names while it runs."""
    text = path.read_text()
    if "def __getattr__" in text or re.search(r"import \*|globals\(\)", text):
        return None
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return frozenset(found)


def imports(text: str) -> Iterator[ast.AST]:
    """The syntax tree of a text, and of the programs that it contains as strings: a test starts such programs in separate processes."""
    for node in ast.walk(ast.parse(text)):
        yield node
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import " in node.value:
            with suppress(SyntaxError):  # a sentence, or a part of a program
                yield from ast.walk(ast.parse(dedent(node.value)))


def missing(path: Path) -> list[str]:
    """The names that `path` imports from the program and that do not exist."""
    lost = []
    for node in imports(path.read_text()):
        if not isinstance(node, ast.ImportFrom) or node.level or (node.module or "").partition(".")[0] not in PROGRAM:
            continue
        place = module(node.module or "")
        known = names(place) if place else frozenset()
        for alias in node.names:
            there = alias.name == "*" or known is None or alias.name in known or module(f"{node.module}.{alias.name}")
            folder = ROOT.joinpath(*(node.module or "").split("."), alias.name)
            if not there and not folder.is_dir():
                lost.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.module} has no {alias.name}")
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
