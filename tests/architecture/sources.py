"""The parts of a Python file that the tests of this folder read. A process parses each file once, and walks through it once."""

import ast
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Source:
    imported: set[str] = field(default_factory=set)
    """The whole names of imported modules. Names of relative imports are not included."""
    classes: list[tuple[int, str]] = field(default_factory=list)
    functions: list[tuple[int, str, int]] = field(default_factory=list)
    """(line, name, number of lines of the body without the docstring)."""
    docstrings: list[tuple[int, str]] = field(default_factory=list)
    """Docstrings, also those below a field or a constant."""
    strings: list[tuple[int, str]] = field(default_factory=list)
    """Strings of four words or more that are not docstrings."""


@cache
def read(path: Path) -> Source:
    source, silent = Source(), set[int]()
    for node in ast.walk(ast.parse(path.read_text())):  # a parent comes before its children
        _note(source, node, silent)
    return source


def _note(source: Source, node: ast.AST, silent: set[int]) -> None:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and id(node) not in silent and node.value.count(" ") > 2:
            source.strings.append((node.lineno, node.value))
    elif isinstance(node, ast.Expr):
        silent.add(id(node.value))
    elif isinstance(node, ast.Import):
        source.imported.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if node.level == 0 and node.module:
            source.imported.add(node.module)
    elif isinstance(node, ast.ClassDef):
        source.classes.append((node.lineno, node.name))
    elif isinstance(node, Function):
        source.functions.append((node.lineno, node.name, _lines(node)))
    body = getattr(node, "body", None)
    for statement in body if isinstance(body, list) else ():
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            source.docstrings.append((value.lineno, value.value))


def _lines(node: Function) -> int:
    body = node.body
    if (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        body = body[1:]
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
