"""Inspects a file that somebody sent before its import begins: which files, which format, the first rows.

The functions that begin with `_` run in a child process with limits, without Django and without a connection. The others call them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from trainer.contracts import Example
from trainer.contracts.example import Split
from webapp.core.background import sandbox
from webapp.core.problems import Invalid
from webapp.files import budgets
from webapp.files.bundle import Bundle
from webapp.files.records import Row, RowProblem
from webapp.files.rows import rows

from ..columns.prompt_hashes import Hashes, hashes
from ..formats import importers
from ..formats.base_importer import Importer
from ..formats.convert import Mapping, MappingOf
from ..formats.fields import UNSAID
from ..formats.importers import REGISTRY
from ..formats.table import SYNONYMS
from ..formats.traces.trace import PARTS_MISSING
from ..versions.split_rule import Rule

AUTO = "auto"
SHOWN = 20
SHOWN_BYTES = 4_000_000  # of all shown rows together; the first row is always shown
CHECKED = 500  # rows that are always checked for problems and sides
LOOKED_AT, LOOK_S = 20_000, 1.0  # further rows, up to this many in this time; seconds
NAMED = 1_000_000  # characters of the names of columns, together
KINDS = 200  # kinds of parts that examples cannot hold: an import reports this many
TEXT_MISSING = "text missing"  # tag of an example whose text is in a file that did not come along
LIMITS = sandbox.ProcessLimits(memory=600_000_000, seconds=20.0)


@dataclass(frozen=True)
class ImportSource:
    """A file that was sent, or a path: `names` are the files whose rows become examples, in order, and `size` the bytes to be read.
    `packed`: unpacking may give more bytes. `unread` are the other files. `columns`: those of the rows that were looked at, if somebody
    asked for them; `all_columns`: no row has another one."""

    path: Path
    names: tuple[str, ...]
    format: str
    size: int
    changed: int
    single: bool
    packed: bool
    unread: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    all_columns: bool = False


class InspectedRow(NamedTuple):
    """The facts that decide the side of a good row in file number `file`."""

    file: int
    line: int
    key: str
    split: Split | None
    hashes: Hashes


def given(path: Path, file_name: str, format: str = AUTO, *, columns: bool = False) -> ImportSource:
    """The source of an import; with `columns`, the columns of a format that needs a mapping too. Raises Invalid at `file` or `format`."""
    said = _ask("_given", path=str(path), file_name=file_name, format=format, named=columns)
    names, unread, found = (tuple(said.pop(name)) for name in ("names", "unread", "columns"))
    return ImportSource(path, names, unread=unread, columns=found, **said)


def looked_at(path: Path, file_name: str, format: str, mapping: Mapping | None, group_by: str) -> dict[str, Any]:
    """The first rows: see `_looked_at`. Raises Invalid at `file` or `format`."""
    asked = {"path": str(path), "file_name": file_name, "format": format, "mapping": mapping, "group_by": group_by}
    said: dict[str, Any] = _ask("_looked_at", **asked)
    said["rows"] = [
        InspectedRow(file, line, key, split, Hashes(*found)) for file, line, key, split, found in said["rows"]
    ]
    said["problems"] = [RowProblem(*problem) for problem in said["problems"]]
    return said


def check_mapping(mapping: Mapping, format: str, columns: Iterable[str], *, complete: bool) -> None:
    """Raises Invalid at a field that is not known, and at one whose column is not among the `columns`; if these are not `complete`, later
    rows may have it, and the import tells at its end whether they do.

    Files whose rows cannot be read have no columns: their rows say why.
    """
    if mapping and not REGISTRY[format].mappable:
        raise Invalid("This format has no column mapping.", {"mapping": f"{format} knows its columns"})
    known = list(columns)
    for name, column in mapping.items():
        if name not in SYNONYMS:
            raise Invalid("The mapping names an unknown field.", {f"mapping.{name}": f"known: {', '.join(SYNONYMS)}"})
        if not isinstance(column, str) or "\0" in column:
            raise Invalid("The mapping must name columns.", {f"mapping.{name}": "must be a column's name"})
        if complete and known and column and column not in known:
            reason = f"no row has the column {column}; the rows have {', '.join(known[:20])}"
            raise Invalid("The mapping names a column that the file does not have.", {f"mapping.{name}": reason})


def _ask(function: str, **asked: Any) -> Any:
    try:
        return sandbox.call(f"{__name__}:{function}", LIMITS, **asked)
    except sandbox.Exceeded as error:
        reason = f"{error} to be inspected. Send it unpacked, in smaller parts, or with shorter rows"
        raise Invalid("The file is too large to inspect.", {"file": reason}) from error


def _given(path: str, file_name: str, format: str, named: bool) -> dict[str, Any]:
    bundle = _readable(Path(path), file_name)
    importer = _importer(bundle, format)
    names = importers.files_for(bundle, importer)
    columns = _named(bundle, names) if named and importer.mappable else _Columns()
    return {
        "names": names,
        "format": importer.name,
        "size": bundle.size,
        "changed": bundle.changed,
        "single": bundle.is_single,
        "packed": bundle.is_packed,
        "unread": [name for name in bundle.names if name not in names],
        "columns": list(columns.names),
        "all_columns": columns.complete,
    }


def _looked_at(path: str, file_name: str, format: str, mapping: Mapping | None, group_by: str) -> dict[str, Any]:
    """Detected format, columns, mapping, first examples and first problems, and for each good row the facts that decide its side."""
    bundle = _readable(Path(path), file_name)
    importer = _importer(bundle, format)
    names = importers.files_for(bundle, importer)
    given = {name: column for name, column in (mapping or {}).items() if column and importer.mappable}
    told = _look(bundle, names, importer, given, group_by)
    if not told.columns.may_have(given):
        given = {}  # a form may still hold the mapping of the file that was chosen before
        told = _look(bundle, names, importer, given, group_by)
    head, columns = bundle.head(names[0]), told.columns
    return {
        "names": names,
        "format": importer.name,
        "confidence": {name: round(each.sniff(head), 2) for name, each in REGISTRY.items()},
        "columns": list(columns.names),
        "all_columns": columns.complete,
        "unread": [name for name in columns.names if name not in columns.read],
        "mapping": given or columns.mapping,
        "guessed": not given,
        "others": {name: list(others) for name, others in columns.others.items()},
        "examples": told.examples,
        "incomplete": told.incomplete,
        "not_imported": dict(told.not_imported.most_common()),
        "rows": told.rows,
        "problems": [(each.line, each.field, each.reason, each.file) for each in told.problems],
        "problem_count": told.problem_count,
        "unsaid": dict(told.unsaid.most_common(KINDS)),
    }


class _Columns:
    """The columns of rows, and by which of them fields are read: `mapping` is the first column of each field, `others` are those that
    some rows have instead. `complete`: all columns of all rows are named."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.read: set[str] = set()
        self.mapping: Mapping = {}
        self.others: dict[str, dict[str, None]] = {}
        self.complete = True
        self._length = 0

    def add(self, row: Row, mapping: Mapping) -> None:
        for name in row:
            if name not in self.names:
                self._add(name)
        for field, column in mapping.items():
            first = self.mapping.setdefault(field, column)
            if column in row:
                self.names.setdefault(column)
                if field != "response" or not _has_pair(row, mapping):
                    self.read.add(column)
                if column != first:
                    self.others.setdefault(field, {})[column] = None

    def _add(self, name: str) -> None:
        self._length += len(name)
        if len(self.names) < budgets.COLUMNS and self._length <= NAMED:
            self.names[name] = None
        else:
            self.complete = False

    def may_have(self, mapping: Mapping) -> bool:
        """Whether the rows have all columns of the mapping, or a part of them was read that has the column of the prompt."""
        return set(mapping.values()) <= self.names.keys() or (not self.complete and mapping.get("prompt") in self.names)

    def noted(self, mapping_of: MappingOf) -> MappingOf:
        """The same mappings; every row for which one is asked is added."""

        def noting(row: Row) -> Mapping:
            mapping = mapping_of(row)
            self.add(row, mapping)
            return mapping

        return noting


def _has_pair(row: Row, mapping: Mapping) -> bool:
    """Whether the row has a better and a worse response. Nothing reads a further one beside them."""
    return "chosen" in mapping and row.get(mapping["chosen"]) not in (None, "")


def _named(bundle: Bundle, names: tuple[str, ...]) -> _Columns:
    """The columns of the first rows of each file, and of further rows as far as the limits allow."""
    columns, ends, number, size = _Columns(), monotonic() + LOOK_S, 0, 0
    for name in names:
        for row in bundle.head(name).rows:
            columns.add(row, {})
    for name in names:
        with bundle.opened(name) as (stream, progress):
            for _, each in rows(stream, name):
                number += 1
                long = size + progress.bytes_out > budgets.HEAD and monotonic() > ends
                if long or _enough(number, ends):
                    columns.complete = False
                    return columns
                if isinstance(each, dict):
                    columns.add(each, {})
            size += progress.bytes_out
    return columns


class _First:
    """The report about the first rows."""

    def __init__(self, rule: Rule, counts_unsaid: bool) -> None:
        self._rule, self._counts_unsaid = rule, counts_unsaid
        self._bytes = 0
        self.columns = _Columns()
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


def _look(bundle: Bundle, names: tuple[str, ...], importer: Importer, given: Mapping, group_by: str) -> _First:
    """The report about the first rows, as many as the limits allow, by the mapping that was given or by those that are guessed."""
    told, ends = _First(Rule(None, group_by), importer.unsaid), monotonic() + LOOK_S
    for name in names if importer.mappable else names[:1]:
        head = bundle.head(name)
        guessed = importer.mapping_of(head)
        for row in head.rows:
            told.columns.add(row, given or guessed(row))
    for number, (file, line, found) in enumerate(_rows(bundle, names, importer, given, told.columns), 1):
        if _enough(number, ends):
            told.columns.complete = False
            break
        told.add(file, line, found)
    return told


def _enough(number: int, ends: float) -> bool:
    """Whether the row with this number is not looked at any more, after the time at which looking ends."""
    return number > LOOKED_AT or (number > CHECKED and monotonic() > ends)


def _rows(
    bundle: Bundle, names: tuple[str, ...], importer: Importer, given: Mapping, columns: _Columns
) -> Iterator[tuple[int, int, Example | RowProblem]]:
    """(number of the file, line, row) of all files. If there are several, each problem says in which file it is."""
    for file, name in enumerate(names):
        mapping_of = importers.mapping_of(importer, bundle, name, given)
        told = columns.noted(mapping_of) if importer.mappable else mapping_of
        with bundle.opened(name) as (stream, _):
            for line, row in importer.read(stream, name, told, bundle.beside(name)):
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
