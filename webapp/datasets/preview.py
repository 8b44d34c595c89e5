"""The first rows of a file as the product will show them, before anything is written."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from trainer.contracts import Example
from webapp.core.problems import Invalid

from .earlier_sides import Target
from .importers import REGISTRY, Bundle, Importer, Mapping, RowProblem, files_for, recognise
from .preview_sides import Row, sided

SHOWN = 20
CHECKED = 500  # rows looked at for problems and sides in any case
LOOKED_AT, LOOK_S = 20_000, 1.0  # and as many as this, if it takes no longer: seconds
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


def preview(
    path: Path, file_name: str, format: str = AUTO, mapping: Mapping | None = None, target: Target | None = None
) -> dict[str, Any]:
    """Detected format, columns, mapping, first examples and first problems; with a target also the sides of the split and
    the prompts that other datasets have on the other side. Raises Invalid at `format`."""
    if format not in (AUTO, *REGISTRY):
        raise Invalid("The format is not known.", {"format": f"must be one of {', '.join((AUTO, *REGISTRY))}"})
    bundle = readable(path, file_name)
    importer = recognise(bundle) if format == AUTO else REGISTRY[format]
    names = files_for(bundle, importer)
    head = bundle.head(names[0] if names else bundle.names[0])
    mapping = mapping or importer.guess(head)
    good, problems = _looked_at(bundle, names, importer, mapping)
    checked = len(good) + len(problems)
    sides = sided(good, importer.name, target) if target else None
    refused = [replace(each, file=each.file if len(names) > 1 else "") for each in (sides.problems if sides else ())]
    told = [problem.told() for problem in (*problems, *refused)]
    splits = sides.splits if sides else {}
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
        "good": checked - len(told),
        "incomplete": sum(TEXT_MISSING in row.example.tags for row in good),
        "examples": [_shown(row, splits.get(place)) for place, row in enumerate(good[:SHOWN])],
        "problems": told[:SHOWN],
        "problem_count": len(told),
        "sides": sides and sides.json(),
    }


def _looked_at(
    bundle: Bundle, names: tuple[str, ...], importer: Importer, mapping: Mapping
) -> tuple[list[Row], list[RowProblem]]:
    """The first rows, as many as are read in a moment."""
    good, problems, ends = [], [], monotonic() + LOOK_S
    for number, (file, name, line, row) in enumerate(_rows(bundle, names, importer, mapping), 1):
        if isinstance(row, RowProblem):
            problems.append(row)
        else:
            good.append(Row(file, name, line, row))
        if number >= LOOKED_AT or (number >= CHECKED and monotonic() > ends):
            break
    return good, problems


def _shown(row: Row, split: str | None) -> dict[str, Any]:
    shown = {"line": row.line, **row.example.model_dump(mode="json")}
    return shown | {"split": split} if split else shown


def _rows(
    bundle: Bundle, names: tuple[str, ...], importer: Importer, mapping: Mapping
) -> Iterator[tuple[int, str, int, Example | RowProblem]]:
    """(number and name of the file, line, row) of all files; of several, each problem says in which it is."""
    for file, name in enumerate(names):
        with bundle.opened(name) as (stream, _):
            for line, row in importer.read(stream, name, mapping, bundle.beside(name)):
                named = isinstance(row, RowProblem) and len(names) > 1
                yield file, name, line, replace(row, file=name) if named else row  # type: ignore[type-var]
