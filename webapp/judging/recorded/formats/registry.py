"""Reads recorded verdicts, what judges have said elsewhere, as plain records.

To add a format, write a module with a `FORMAT`, name it in `_MODULES`, and test it in tests/webapp/judging/recorded/formats.
"""

from collections.abc import Iterator
from pathlib import Path

from webapp.files.bundle import Bundle
from webapp.files.rows import rows

from . import audit_lines, judgebench, pandalm, paperbench
from .base import BadRow, Record, Row, RowProblem, VerdictFormat

_MODULES = (audit_lines, judgebench, pandalm, paperbench)
REGISTRY: dict[str, VerdictFormat] = {module.FORMAT.name: module.FORMAT for module in _MODULES}
SURE = 0.5


class UnknownFormat(ValueError):
    """No format knows the file; the message lists those there are."""


def detect(bundle: Bundle) -> VerdictFormat:
    """The format of most files that some format knows. Raises UnknownFormat, or OSError for an unreadable file."""
    found = [best for name in bundle.names if (best := _best(bundle.head(name).rows)) is not None]
    if not found:
        known = "; ".join(f"{each.name}: {each.help}" for each in REGISTRY.values())
        raise UnknownFormat(f"{bundle.path}: no recorded verdicts of a known format. Known are {known}")
    return max(found, key=found.count)


def _best(head: tuple[Row, ...]) -> VerdictFormat | None:
    """The format that is surest of the rows on average, so that a few malformed ones do not hide it."""
    sure = {each.name: sum(map(each.knows, head)) / len(head) for each in REGISTRY.values()} if head else {}
    name = max(sure, key=lambda each: sure[each], default="")
    return REGISTRY[name] if name and sure[name] >= SURE else None


def read(path: Path, form: VerdictFormat | None = None) -> Iterator[tuple[str, int, Record | RowProblem]]:
    """(file, line, record or problem) of a file, folder or zip archive; memory does not grow with it.

    Files of other formats are passed over if there are several files. Raises OSError and UnknownFormat before the first record.
    """
    bundle = Bundle(path)
    chosen = form or detect(bundle)
    names = bundle.names
    if not bundle.is_single:
        names = tuple(name for name in names if _best(bundle.head(name).rows) is chosen) or names
    return (each for name in names for each in _records(bundle, name, chosen))


def _records(bundle: Bundle, name: str, form: VerdictFormat) -> Iterator[tuple[str, int, Record | RowProblem]]:
    convert = form.bind(bundle.beside(name))
    with bundle.opened(name) as (stream, _):
        for line, row in rows(stream, name):
            if isinstance(row, RowProblem):
                yield name, line, row
                continue
            try:
                for record in convert(row):
                    yield name, line, record
            except BadRow as problem:
                yield name, line, RowProblem(line, problem.field, problem.reason)
