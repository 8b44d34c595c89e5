"""The parts of a Python file that the tests of this folder read. A process parses each file once, and walks through it once."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Source:
    imported: set[str] = field(default_factory=set)
    """The whole names of imported modules. Names of relative imports are not included."""
    at_once: set[str] = field(default_factory=set)
    """Those that the module imports as it is loaded, by a statement at its top."""
    from_modules: list[tuple[int, str, tuple[str, ...]]] = field(default_factory=list)
    """(line, module, names) of each `from module import names`."""
    bound: set[str] = field(default_factory=set)
    """Names of classes, functions, imports and variables, at the top and below."""
    classes: list[tuple[int, str]] = field(default_factory=list)
    functions: list[tuple[int, str, int]] = field(default_factory=list)
    """(line, name, number of lines of the body without the docstring)."""
    docstrings: list[tuple[int, str]] = field(default_factory=list)
    """Docstrings, also those below a field or a constant."""
    strings: list[tuple[int, str]] = field(default_factory=list)
    """Strings of four words or more that are not docstrings."""


@cache
def read(path: Path) -> Source:
    return read_text(path.read_text())


def read_text(text: str) -> Source:
    source, silent, tree = Source(), set[int](), ast.parse(text)
    for statement in tree.body:
        source.at_once |= _imported(statement)
    for node in _walk(tree):
        _note(source, node, silent)
    return source


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """A parent comes before its children, as in `ast.walk`, which takes twice as long."""
    waiting = [tree]
    for node in waiting:
        yield node
        for value in vars(node).values():
            if isinstance(value, list):
                waiting += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                waiting.append(value)


def _imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    return {node.module} if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module else set()


def _note(source: Source, node: ast.AST, silent: set[int]) -> None:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and id(node) not in silent and node.value.count(" ") > 2:
            source.strings.append((node.lineno, node.value))
    elif isinstance(node, ast.Expr):
        silent.add(id(node.value))
    elif isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            source.bound.add(node.id)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        source.imported |= _imported(node)
        source.bound.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            source.from_modules.append((node.lineno, node.module, tuple(alias.name for alias in node.names)))
    elif isinstance(node, ast.ClassDef):
        source.classes.append((node.lineno, node.name))
        source.bound.add(node.name)
    elif isinstance(node, Function):
        source.functions.append((node.lineno, node.name, _lines(node)))
        source.bound.add(node.name)
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
