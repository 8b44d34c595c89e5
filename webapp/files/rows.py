"""Rows as objects, from any container: JSON Lines, one JSON array, CSV or Parquet."""

import codecs
import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from datetime import date, time
from typing import Any, BinaryIO

from pydantic_core import from_json

from . import budgets
from .members import Members
from .records import Row, RowProblem
from .source import BOM, UNPACKING_ERRORS, bounded_lines, unpacking

Rows = Iterator[tuple[int, "Row | RowProblem"]]
PARQUET_MAGIC, ZIP_MAGIC = b"PAR1", b"PK\x03\x04"
ARCHIVE = (
    "is an archive that cannot be read here: it is damaged, or inside another archive or a folder; import it by itself"
)
CHUNK = 1 << 18
NEAR_END = 64  # characters: an error there is that the text ends within the object
CSV_ERRORS = {"unexpected end of data": "a quotation mark that opens a cell of this row is never closed"}
PARQUET_ROWS = 500  # unpacked at a time, of short ones


def rows(stream: BinaryIO | Members, name: str) -> Rows:
    """(line, object or problem) of every row. A file that is damaged midway ends with a problem, not an exception. Raises
    OSError if the file cannot be read."""
    if isinstance(stream, Members):
        yield from member_rows(stream)
        return
    buffered = io.BufferedReader(_Peekable(stream), CHUNK)
    line = 0
    try:
        for line, row in _reader(buffered.peek(64)[:64], name)(buffered):
            yield line, row
    except budgets.TooMuch as error:
        yield line + 1, RowProblem(line + 1, "", f"the file {error}")
    except (*UNPACKING_ERRORS, OSError) as error:
        if not unpacking(error):
            raise
        yield line + 1, RowProblem(line + 1, "", f"the compressed file is damaged here: {error}")


def _reader(head: bytes, name: str) -> Any:
    plain = name.lower().removesuffix(".gz")
    if head.startswith(PARQUET_MAGIC):
        return parquet_rows
    if head.startswith(ZIP_MAGIC):
        return lambda stream: iter([(1, RowProblem(1, "", ARCHIVE))])
    if plain.endswith((".csv", ".tsv")):
        return lambda stream: csv_rows(stream, "\t" if plain.endswith(".tsv") else ",")
    start = head.removeprefix(BOM).lstrip()
    if start[:1] == b"[":
        return array_rows
    # an object that continues after its first line was written for people: the file is one object, or several
    return object_rows if start.split(b"\n")[0].strip() == b"{" else json_rows


class _Peekable(io.RawIOBase):
    """Lets a gzip stream stand under a BufferedReader, which can look ahead without consuming."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read1(len(buffer))  # what can be read before a damaged place is still given
        buffer[: len(data)] = data
        return len(data)


def member_rows(stream: Members) -> Rows:
    """One object from each file; `line` is the number of the file."""
    for number, content in enumerate(stream, 1):
        yield number, content if isinstance(content, RowProblem) else _object(number, content)


def json_rows(stream: BinaryIO) -> Rows:
    for number, line in bounded_lines(stream):
        yield number, line if isinstance(line, RowProblem) else _object(number, line)


def _object(number: int, line: bytes) -> Row | RowProblem:
    try:
        value = from_json(line, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        return RowProblem(number, "", _not_json(line, error))
    if not isinstance(value, dict):
        return RowProblem(number, "", f"expected a JSON object, found {_kind(value)}")
    return value


def _not_json(line: bytes, error: ValueError) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as wrong:
        return f"not UTF-8 text: byte {wrong.start + 1} of the line is 0x{line[wrong.start]:02x}"
    return f"not JSON: {error}".replace(" at line 1 column", " at column")


def _kind(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def array_rows(stream: BinaryIO) -> Rows:
    """The elements of one top-level array, one at a time; `line` is where an element starts."""
    text = _Text(stream)
    text.skip("[")
    yield from _values(text)
    if problem := text.ending():
        yield text.line, RowProblem(text.line, "", problem)


def object_rows(stream: BinaryIO) -> Rows:
    """Objects one after the other, each over as many lines as it likes; `line` is where one starts."""
    yield from _values(_Text(stream))


def _values(text: "_Text") -> Rows:
    while text.more():
        line = text.line
        try:
            value = text.value()
        except (ValueError, RecursionError) as error:
            yield line, RowProblem(line, "", text.wrong or f"not JSON from here on: {error}")
            text.give_up()
            return
        yield (
            line,
            value if isinstance(value, dict) else RowProblem(line, "", f"expected an object, found {_kind(value)}"),
        )
    if text.wrong:
        yield text.line, RowProblem(text.line, "", text.wrong)
        text.give_up()


class _Text:
    """A window over decoded text that grows until one JSON value fits in it. It ends if the bytes are no longer text;
    `wrong` says so then."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._window = ""
        self._ended = False
        self._lost = False
        self._json = json.JSONDecoder(parse_constant=self._refuse)
        self.line = 1
        self.wrong = ""

    def _grow(self) -> bool:
        if self._ended:
            return False
        data = self._stream.read(CHUNK)
        self._ended = not data
        try:
            self._window += self._decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            self._window += error.object[: error.start].decode("utf-8-sig")
            self._ended, self.wrong = True, f"not UTF-8 text from here on: 0x{error.object[error.start]:02x}"
            return True
        return not self._ended

    def _drop(self, count: int) -> None:
        self.line += self._window.count("\n", 0, count)
        self._window = self._window[count:]

    def skip(self, extra: str = "") -> str:
        """Moves over white space and, once, one of the characters in `extra`; returns what comes next, or ''."""
        while True:
            spaces = len(self._window) - len(self._window.lstrip())
            self._drop(spaces)
            if self._window and self._window[0] in extra:
                self._drop(1)
                extra = ""
            elif self._window or not self._grow():
                return self._window[:1]

    def more(self) -> bool:
        return self.skip(",") not in ("", "]")

    def value(self) -> object:
        while True:
            try:
                value, end = self._json.raw_decode(self._window)
            except json.JSONDecodeError as error:
                full = len(self._window) > budgets.LINE
                if full and (error.msg.startswith("Unterminated") or error.pos >= len(self._window) - NEAR_END):
                    self.wrong = f"the object that begins here is longer than {budgets.LINE // 10**6} MB"
                if full or not self._grow():
                    raise ValueError(f"{error.msg.removesuffix(' at')} at column {error.colno}") from error
                continue
            if end == len(self._window) and self._grow():
                continue  # a number may continue in the next chunk
            self._drop(end)
            return value

    def give_up(self) -> None:
        """Nothing that follows can be told apart any more; `ending` has no more to say."""
        self._lost = True

    def ending(self) -> str:
        if self._lost:
            return ""
        if self.skip() != "]":
            return "the list is not closed: the file breaks off"
        self._drop(1)
        return "text follows after the list" if self.skip() else ""

    @staticmethod
    def _refuse(name: str) -> float:
        raise ValueError(f"{name} is not JSON")


def csv_rows(stream: BinaryIO, delimiter: str) -> Rows:
    """Rows by header; `line` is where a row starts. Cells are text; bytes that are not UTF-8 make a problem of their row."""
    csv.field_size_limit(budgets.LINE)
    text = _Record(io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline=""))
    reader = csv.reader(text.lines(), delimiter=delimiter, strict=True)
    line = 1
    try:
        names = next(reader, [])
        if problem := _header_problem(names):
            yield 1, problem
            return
        line = reader.line_num + 1
        for cells in reader:
            if cells:  # an empty line is not a row
                yield line, _cells(line, names, cells)
            text.size = 0
            line = reader.line_num + 1
    except csv.Error as error:
        yield line, RowProblem(line, "", f"not CSV from here on: {CSV_ERRORS.get(str(error), error)}")


class _Record:
    """The lines of a table, of which one record, over however many lines, has a bounded `size`; the reader sets it to 0 after a record."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text
        self.size = 0

    def lines(self) -> Iterator[str]:
        """Raises csv.Error in a record that is too long."""
        while line := self._text.readline(budgets.LINE + 1):
            self.size += len(line)
            if self.size > budgets.LINE:
                raise csv.Error(f"a row is longer than {budgets.LINE // 10**6} MB")
            yield line


def _header_problem(names: Sequence[str]) -> RowProblem | None:
    """Too many columns, a name that is not UTF-8, or the first name that comes again; columns without a name may."""
    if len(names) > budgets.COLUMNS:
        return RowProblem(1, "", f"the header names {len(names):,} columns; at most {budgets.COLUMNS:,} are read")
    seen: set[str] = set()
    for number, name in enumerate(names, start=1):
        if _escaped(name):  # the name could not be shown or stored
            return RowProblem(1, "", f"the name of column {number} is not UTF-8 text")
        if name and name in seen:
            return RowProblem(1, name, "the header names this column twice, and only one could be read")
        seen.add(name)
    return None


def _cells(line: int, names: Sequence[str], cells: Sequence[str]) -> Row | RowProblem:
    if (more := len(cells) - len(names)) > 0:
        return RowProblem(line, "", f"more cells than the header has columns: {more} too many")
    if more < 0:
        return RowProblem(line, names[len(cells)], "the row ends before this column")
    row = dict(zip(names, cells, strict=True))
    for name, cell in row.items():
        if _escaped(cell):
            return RowProblem(line, name, "not UTF-8 text")
    return row


def _escaped(text: str) -> bool:
    """Whether a byte of the text was not UTF-8; `csv_rows` reads such bytes as half surrogate pairs."""
    return not text.isascii() and any("\udc80" <= letter <= "\udcff" for letter in text)


def parquet_rows(stream: BinaryIO) -> Rows:
    """Rows of a Parquet file; `line` is the row's number from 1.

    Moments, days and decimals become text, NaN null (as pandas writes what is missing); bytes are refused by column.
    """
    import pyarrow.parquet as parquet  # heavy: only who reads Parquet pays for it

    number = 0
    try:
        file = parquet.ParquetFile(stream)
        size = _parquet_batch(file.metadata)
        typed = [column.name for column in file.schema_arrow if not _is_json(column.type)]
        for batch in file.iter_batches(batch_size=size):
            for piece in _pieces(batch):
                for row in piece.to_pylist():
                    number += 1
                    yield number, _told(number, row, typed) if typed else row
    except budgets.TooMuch as error:
        yield number + 1, RowProblem(number + 1, "", f"the file {error}")
    except (OSError, ValueError) as error:
        yield number + 1, RowProblem(number + 1, "", f"not Parquet from here on: {error}")


def _parquet_batch(facts: Any) -> int:
    """The number of rows that are unpacked at a time, by the file's own word; what it does not say, the reader's memory limit ends.

    Raises TooMuch.
    """
    if facts.num_columns > budgets.COLUMNS:
        raise budgets.TooMuch(f"has {facts.num_columns:,} columns; at most {budgets.COLUMNS:,} are read")
    largest = 0
    for index in range(facts.num_row_groups):
        group = facts.row_group(index)
        if group.total_byte_size > budgets.ROW_GROUP:
            most = f"{budgets.ROW_GROUP // 10**9} GB"
            raise budgets.TooMuch(f"has a row group of more than {most}; write it with smaller ones")
        largest = max(largest, group.total_byte_size // max(1, group.num_rows))
    return max(1, min(PARQUET_ROWS, budgets.BATCH // max(1, largest)))


def _pieces(batch: Any) -> Iterator[Any]:
    """The batch in slices that are small enough to be made Python's. Raises TooMuch for a row that is too long."""
    if batch.nbytes <= budgets.BATCH:
        yield batch
    elif batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))
    elif sum(map(_row_bytes, batch.columns)) > budgets.LINE:
        raise budgets.TooMuch(f"has a row of more than {budgets.LINE // 10**6} MB")
    else:
        yield batch


def _row_bytes(column: Any) -> int:
    """The bytes of a column's only value, without those that its dictionary has for other rows."""
    from pyarrow import types

    return int((column.dictionary_decode() if types.is_dictionary(column.type) else column).nbytes)


def _is_json(kind: Any) -> bool:
    """Whether every value of this Arrow type is one of JSON as it comes; columns that are cost nothing."""
    from pyarrow import types

    if types.is_nested(kind):
        return all(_is_json(kind.field(i).type) for i in range(kind.num_fields))
    if types.is_dictionary(kind):
        return _is_json(kind.value_type)
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind) or types.is_boolean(kind)
    )


def _told(number: int, row: Row, columns: list[str]) -> Row | RowProblem:
    for name in columns:
        try:
            row[name] = _plain(row[name])
        except TypeError:
            return RowProblem(number, name, "holds bytes, which an example cannot hold; leave the column out")
    return row


def _plain(value: Any) -> Any:
    """A Python value of Parquet as one of JSON. Raises TypeError for bytes."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        raise TypeError("bytes")
    return value.isoformat() if isinstance(value, date | time) else str(value)
