"""The first rows of a file as the product will show them, before anything is written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..formats.convert import Mapping
from ..formats.importers import REGISTRY
from . import inspection
from .inspection import AUTO, SHOWN
from .preview_splits import known, sided
from .target import ImportTarget

# parts of an inspection that a preview shows as they are
KEPT = (
    *("confidence", "columns", "all_columns", "mapping", "guessed", "others"),
    *("incomplete", "not_imported", "unsaid"),
)


def preview(
    path: Path, file_name: str, format: str = AUTO, mapping: Mapping | None = None, target: ImportTarget | None = None
) -> dict[str, Any]:
    """Detected format, columns, mapping, first examples and first problems; with a target also the sides of the split and
    the prompts that other datasets have on the other side. Raises Invalid at `format` or `file`."""
    dataset = known(target) if target else None
    group_by = dataset.group_by if dataset else target.group_by if target else ""
    seen = inspection.looked_at(path, file_name, format, mapping, group_by)
    names, importer = seen["names"], REGISTRY[seen["format"]]
    sides = sided(seen["rows"], names, importer.name, target, dataset) if target else None
    refused = [replace(each, file=each.file if len(names) > 1 else "") for each in (sides.problems if sides else ())]
    told = [problem.told() for problem in (*seen["problems"], *refused)]
    problem_count = seen["problem_count"] + len(refused)
    splits = sides.splits if sides else {}
    checked = len(seen["rows"]) + seen["problem_count"]
    return {
        "file": file_name,
        "files": names,
        "format": importer.name,
        "label": importer.label,
        "mappable": importer.mappable,
        "unread": seen["unread"] if importer.mappable else [],
        **{name: seen[name] for name in KEPT},
        "checked": checked,
        "good": checked - problem_count,
        "examples": [_shown(row, splits.get(place)) for place, row in enumerate(seen["examples"])],
        "problems": told[:SHOWN],
        "problem_count": problem_count,
        "sides": sides and sides.json(),
    }


def _shown(row: dict[str, Any], split: str | None) -> dict[str, Any]:
    return row | {"split": split} if split else row
