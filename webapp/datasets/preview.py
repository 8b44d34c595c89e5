"""The first rows of a file as the product will show them, before anything is written."""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from webapp.core.problems import Invalid

from .importers import REGISTRY, Mapping, RowProblem, detect, head_of, opened

SHOWN = 20
CHECKED = 500  # rows looked at for problems
AUTO = "auto"


def preview(path: Path, file_name: str, format: str = AUTO, mapping: Mapping | None = None) -> dict[str, Any]:
    """Detected format, columns, mapping, first examples and first problems. Raises Invalid at `format`."""
    if format not in (AUTO, *REGISTRY):
        raise Invalid("The format is not known.", {"format": f"must be one of {', '.join((AUTO, *REGISTRY))}"})
    head = head_of(path, file_name)
    importer = detect(head) if format == AUTO else REGISTRY[format]
    mapping = mapping or importer.guess(head)
    examples: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] = []
    checked = good = 0
    with opened(path) as (stream, _):
        for line, row in islice(importer.read(stream, file_name, mapping), CHECKED):
            checked += 1
            if isinstance(row, RowProblem):
                problems.append(asdict(row))
                continue
            good += 1
            if len(examples) < SHOWN:
                examples.append({"line": line, **row.model_dump(mode="json")})
    return {
        "file": file_name,
        "format": importer.name,
        "label": importer.label,
        "confidence": {name: round(each.sniff(head), 2) for name, each in REGISTRY.items()},
        "mappable": importer.mappable,
        "columns": list(dict.fromkeys(str(name) for row in head.rows for name in row)),
        "mapping": mapping,
        "checked": checked,
        "good": good,
        "examples": examples,
        "problems": problems[:SHOWN],
        "problem_count": len(problems),
    }
