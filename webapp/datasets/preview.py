"""The first rows of a file as the product will show them, before anything is written."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from trainer.contracts import Example
from webapp.core.problems import Invalid

from .importers import REGISTRY, Bundle, Importer, Mapping, RowProblem, files_for, recognise

SHOWN = 20
CHECKED = 500  # rows looked at for problems
AUTO = "auto"
TEXT_MISSING = "text missing"  # tag of an example whose text is in a file that did not come along


def readable(path: Path, file_name: str) -> Bundle:
    """The file, folder or archive, each of whose files can be opened. Raises Invalid at `file`."""
    try:
        bundle = Bundle(path, file_name)
        for name in bundle.names:
            with bundle.opened(name):
                pass
    except OSError as error:
        raise Invalid("The file cannot be read.", {"file": str(error)}) from error
    if not bundle.names:
        raise Invalid("There is nothing to import.", {"file": "holds no files"})
    return bundle


def preview(path: Path, file_name: str, format: str = AUTO, mapping: Mapping | None = None) -> dict[str, Any]:
    """Detected format, columns, mapping, first examples and first problems. Raises Invalid at `format`."""
    if format not in (AUTO, *REGISTRY):
        raise Invalid("The format is not known.", {"format": f"must be one of {', '.join((AUTO, *REGISTRY))}"})
    bundle = readable(path, file_name)
    importer = recognise(bundle) if format == AUTO else REGISTRY[format]
    names = files_for(bundle, importer)
    head = bundle.head(names[0] if names else bundle.names[0])
    mapping = mapping or importer.guess(head)
    examples: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] = []
    checked = good = incomplete = 0
    for line, row in islice(_rows(bundle, names, importer, mapping), CHECKED):
        checked += 1
        if isinstance(row, RowProblem):
            problems.append(row.told())
            continue
        good += 1
        incomplete += TEXT_MISSING in row.tags
        if len(examples) < SHOWN:
            examples.append({"line": line, **row.model_dump(mode="json")})
    return {
        "file": file_name,
        "files": list(names),
        "format": importer.name,
        "label": importer.label,
        "confidence": {name: round(each.sniff(head), 2) for name, each in REGISTRY.items()},
        "mappable": importer.mappable,
        "columns": list(dict.fromkeys(str(name) for row in head.rows for name in row)),
        "mapping": mapping,
        "checked": checked,
        "good": good,
        "incomplete": incomplete,
        "examples": examples,
        "problems": problems[:SHOWN],
        "problem_count": len(problems),
    }


def _rows(
    bundle: Bundle, names: tuple[str, ...], importer: Importer, mapping: Mapping
) -> Iterator[tuple[int, Example | RowProblem]]:
    """The rows of all files; of several, each problem says in which it is."""
    for name in names:
        with bundle.opened(name) as (stream, _):
            for line, row in importer.read(stream, name, mapping, bundle.beside(name)):
                named = isinstance(row, RowProblem) and len(names) > 1
                yield line, replace(row, file=name) if named else row  # type: ignore[type-var]
