"""Importers: one module per format, one plain registry.

To add one: write a module with an `IMPORTER`, name it in `_MODULES`, and mirror it in tests/webapp/datasets/importers.
"""

from pathlib import Path

from . import healthbench, hh_rlhf, pandalm, table, touchstone, trl_preference
from .base import BadRow, Head, Importer, Mapping, Row, RowProblem
from .rows import rows
from .source import opened

__all__ = ["REGISTRY", "BadRow", "Head", "Importer", "Mapping", "Row", "RowProblem", "detect", "head_of", "opened"]

_MODULES = (touchstone, trl_preference, healthbench, hh_rlhf, pandalm, table)
REGISTRY: dict[str, Importer] = {module.IMPORTER.name: module.IMPORTER for module in _MODULES}
HEAD_ROWS = 20


def head_of(path: Path, name: str) -> Head:
    """The first rows of the file that can be read. Raises OSError."""
    found: list[Row] = []
    with opened(path) as (stream, _):
        for index, (_, row) in enumerate(rows(stream, name)):
            if isinstance(row, dict):
                found.append(row)
            if index + 1 >= HEAD_ROWS:
                break
    return Head(name, tuple(found))


def detect(head: Head) -> Importer:
    """The importer that is surest of the file; the plain table when none knows it."""
    return max(REGISTRY.values(), key=lambda importer: importer.sniff(head))
