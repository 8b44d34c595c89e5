"""Inspects a file that somebody sent before its import begins: which files, which format, the first rows.

The functions that begin with `_` run in a child process with limits, without Django and without a connection. The others call them.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from trainer.contracts import Example
from trainer.contracts.example import Split
from webapp.core.background import sandbox
from webapp.core.problems import Invalid
from webapp.files import budgets
from webapp.files.bundle import Bundle
from webapp.files.records import FileHead, RowProblem

from ..columns.prompt_hashes import Hashes, hashes
from ..formats import importers
from ..formats.base_importer import Importer
from ..formats.convert import Mapping
from ..formats.fields import UNSAID
from ..formats.importers import REGISTRY
from ..formats.traces.trace import PARTS_MISSING
from ..versions.split_rule import Rule

AUTO = "auto"
SHOWN = 20
SHOWN_BYTES = 4_000_000  # of all shown rows together; the first row is always shown
CHECKED = 500  # rows that are always checked for problems and sides
LOOKED_AT, LOOK_S = 20_000, 1.0  # further rows, up to this many in this time; seconds
KINDS = 200  # kinds of parts that examples cannot hold: an import reports this many
TEXT_MISSING = "text missing"  # tag of an example whose text is in a file that did not come along
LIMITS = sandbox.ProcessLimits(memory=600_000_000, seconds=20.0)


@dataclass(frozen=True)
class ImportSource:
    """A file that was sent, or a path: `names` are the files whose rows become examples, in order, and `size` the bytes to be read.
    `packed`: unpacking may give more bytes. `unread` are the other files. For a format that reads columns through a mapping, `columns` are
    those of the first rows, and `mapping` is what their names suggest."""

    path: Path
    names: tuple[str, ...]
    format: str
    size: int
    changed: int
    single: bool
    packed: bool
    unread: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    mapping: Mapping = field(default_factory=dict)


class InspectedRow(NamedTuple):
    """The facts that decide the side of a good row in file number `file`."""

    file: int
    line: int
    key: str
    split: Split | None
    hashes: Hashes


def given(path: Path, file_name: str, format: str = AUTO) -> ImportSource:
    """The source of an import. Raises Invalid at `file` or `format`."""
    said = _ask("_given", path=str(path), file_name=file_name, format=format)
    names, unread, columns = (tuple(said.pop(name)) for name in ("names", "unread", "columns"))
    return ImportSource(path, names, unread=unread, columns=columns, **said)


def looked_at(path: Path, file_name: str, format: str, mapping: Mapping | None, group_by: str) -> dict[str, Any]:
    """The first rows: see `_looked_at`. Raises Invalid at `file` or `format`."""
    asked = {"path": str(path), "file_name": file_name, "format": format, "mapping": mapping, "group_by": group_by}
    said: dict[str, Any] = _ask("_looked_at", **asked)
    said["rows"] = [
        InspectedRow(file, line, key, split, Hashes(*found)) for file, line, key, split, found in said["rows"]
    ]
    said["problems"] = [RowProblem(*problem) for problem in said["problems"]]
    return said


def check_columns(mapping: Mapping, columns: Collection[str]) -> None:
    """Raises Invalid at a field whose column none of the first rows has. A row may lack some columns, so nobody would notice later.

    Files whose first rows cannot be read have no columns: their rows say why.
    """
    for name, column in mapping.items():
        if columns and column and column not in columns:
            reason = f"none of the first rows has the column {column}; they have {', '.join(list(columns)[:20])}"
            raise Invalid("The mapping names a column that the file does not have.", {f"mapping.{name}": reason})


def _ask(function: str, **asked: Any) -> Any:
    try:
        return sandbox.call(f"{__name__}:{function}", LIMITS, **asked)
    except sandbox.Exceeded as error:
        reason = f"{error} to be inspected. Send it unpacked, in smaller parts, or with shorter rows"
        raise Invalid("The file is too large to inspect.", {"file": reason}) from error


def _given(path: str, file_name: str, format: str) -> dict[str, Any]:
    bundle = _readable(Path(path), file_name)
    importer = _importer(bundle, format)
    names = importers.files_for(bundle, importer)
    head = bundle.head(names[0]) if importer.mappable and names else FileHead("", ())
    return {
        "names": names,
        "format": importer.name,
        "size": bundle.size,
        "changed": bundle.changed,
        "single": bundle.is_single,
        "packed": bundle.is_packed,
        "unread": [name for name in bundle.names if name not in names],
        "columns": _columns(head),
        "mapping": importer.guess(head) if head.rows else {},
    }


def _looked_at(path: str, file_name: str, format: str, mapping: Mapping | None, group_by: str) -> dict[str, Any]:
    """Detected format, columns, mapping, first examples and first problems, and for each good row the facts that decide its side."""
    bundle = _readable(Path(path), file_name)
    importer = _importer(bundle, format)
    names = importers.files_for(bundle, importer)
    head = bundle.head(names[0])
    columns = _columns(head)
    # a form may still hold the mapping of the file that was chosen before
    mapping = {name: column for name, column in (mapping or {}).items() if column}
    mapping = mapping if mapping and set(mapping.values()) <= set(columns) else importer.guess(head)
    told = _First(Rule(None, group_by), importer.unsaid)
    _look(bundle, names, importer, mapping, told)
    return {
        "names": names,
        "format": importer.name,
        "confidence": {name: round(each.sniff(head), 2) for name, each in REGISTRY.items()},
        "columns": columns[: budgets.COLUMNS],
        "mapping": mapping,
        "examples": told.examples,
        "incomplete": told.incomplete,
        "not_imported": dict(told.not_imported.most_common()),
        "rows": told.rows,
        "problems": [(each.line, each.field, each.reason, each.file) for each in told.problems],
        "problem_count": told.problem_count,
        "unsaid": dict(told.unsaid.most_common(KINDS)),
    }


def _columns(head: FileHead) -> list[str]:
    return list(dict.fromkeys(str(name) for row in head.rows for name in row))


class _First:
    """The report about the first rows."""

    def __init__(self, rule: Rule, counts_unsaid: bool) -> None:
        self._rule, self._counts_unsaid = rule, counts_unsaid
        self._bytes = 0
        self.examples: list[dict[str, Any]] = []
        self.rows: list[InspectedRow] = []
        self.problems: list[RowProblem] = []
        self.incomplete = self.problem_count = 0
        self.not_imported: Counter[str] = Counter()
        self.unsaid: Counter[str] = Counter()

    def add(self, file: int, line: int, row: Example | RowProblem) -> None:
        if isinstance(row, RowProblem):
            self.problem_count += 1
            if len(self.problems) < SHOWN:
                self.problems.append(row.short())
            return
        if len(self.examples) < SHOWN and self._bytes < SHOWN_BYTES:
            shown = {"line": line, **row.model_dump(mode="json")}
            self._bytes += len(row.canonical())
            if self._bytes < SHOWN_BYTES or not self.examples:
                self.examples.append(shown)
        self.incomplete += TEXT_MISSING in row.tags
        if PARTS_MISSING in row.tags:
            self.not_imported.update(row.meta.get("not_imported", {}))
        if self._counts_unsaid:
            self.unsaid.update(row.meta.get(UNSAID, ()))
        grouped = row.model_copy(update={"group": self._rule.group_of(row)})
        self.rows.append(InspectedRow(file, line, row.key, row.split, hashes(grouped)))


def _look(bundle: Bundle, names: tuple[str, ...], importer: Importer, mapping: Mapping, told: _First) -> None:
    """Reads the first rows, as many as the limits allow."""
    ends = monotonic() + LOOK_S
    for number, (file, line, row) in enumerate(_rows(bundle, names, importer, mapping), 1):
        told.add(file, line, row)
        if number >= LOOKED_AT or (number >= CHECKED and monotonic() > ends):
            return


def _rows(
    bundle: Bundle, names: tuple[str, ...], importer: Importer, mapping: Mapping
) -> Iterator[tuple[int, int, Example | RowProblem]]:
    """(number of the file, line, row) of all files. If there are several, each problem says in which file it is."""
    for file, name in enumerate(names):
        with bundle.opened(name) as (stream, _):
            for line, row in importer.read(stream, name, mapping, bundle.beside(name)):
                named = isinstance(row, RowProblem) and len(names) > 1 and not row.file
                yield file, line, replace(row, file=name) if named else row  # type: ignore[type-var]


def _readable(path: Path, file_name: str) -> Bundle:
    """The file, folder or archive; all its files can be opened. Raises Invalid at `file`."""
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


def _importer(bundle: Bundle, format: str) -> Importer:
    """The importer of the files. Raises Invalid at `format`."""
    if format not in (AUTO, *REGISTRY):
        raise Invalid("The format is not known.", {"format": f"must be one of {', '.join((AUTO, *REGISTRY))}"})
    return importers.recognise(bundle) if format == AUTO else importers.chosen(bundle, format)
