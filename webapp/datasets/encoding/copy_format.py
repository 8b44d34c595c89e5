"""Writes rows in the binary form of Postgres' COPY, because parsing text would take a third of the server's work.

A column is written as its length and its bytes, a missing value as length -1 (Postgres documentation, COPY, "Binary Format").
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import call
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
NULL = b"\xff\xff\xff\xff"
KNOWN = 1 << 12  # cells kept for a type whose values often repeat
VARCHAR_OID = 1043
JSONB = b"\1"  # the version of the form, before the text
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

_count = Struct(">h").pack
_length = Struct(">i").pack
_int = Struct(">ii").pack
_long = Struct(">iq").pack
_double = Struct(">id").pack
_array = Struct(">iiIii").pack  # dimensions, whether it holds NULL, type of the elements, size, lower bound
EMPTY = _length(12) + Struct(">iiI").pack(0, 0, VARCHAR_OID)  # an array of no dimensions


def sized(data: bytes | bytearray) -> bytes:
    """The cell of a text in UTF-8, or of bytes."""
    return _length(len(data)) + data


def cell(number: int) -> bytes:
    """The cell of an `int`."""
    return _int(4, number)


def _text(value: str | bytes | None) -> bytes:
    if value is None:
        return NULL
    data = value if type(value) is bytes else value.encode()  # type: ignore[union-attr]
    return _length(len(data)) + data


def _real(value: float | None) -> bytes:
    return NULL if value is None else _double(8, value)


class CellCache(dict[Any, bytes]):
    """The cells of frequent values, each made once: a look-up takes a quarter of the time."""

    def __init__(self, write: Callable[[Any], bytes]) -> None:
        self._write = write
        self[None] = NULL

    def __missing__(self, value: Any) -> bytes:
        if len(self) >= KNOWN:
            self.clear()
            self[None] = NULL
        found = self[value] = self._write(value)
        return found


def _texts(values: list[str]) -> bytes:
    if not values:
        return EMPTY
    data = _array(1, 0, VARCHAR_OID, len(values), 1) + b"".join(map(_text, values))
    return _length(len(data)) + data


# only texts, whole numbers up to 32 bits and numbers with a point may be missing
WRITERS: Mapping[str, Callable[[Any], bytes]] = {
    "text": _text,
    "varchar": CellCache(_text).__getitem__,
    "int": CellCache(cell).__getitem__,
    "bigint": lambda value: _long(8, value),
    "double precision": _real,
    "varchar[]": _texts,
    "bytea": sized,
    "jsonb": lambda value: sized(JSONB + json.dumps(value).encode()),
}


def moment(time: datetime) -> int:
    """The time in microseconds, as its cell of eight bytes has it."""
    return (time - EPOCH) // timedelta(microseconds=1)


def time_of(microseconds: int) -> datetime:
    """The time of such a cell."""
    return EPOCH + timedelta(microseconds=microseconds)


def cells(types: Iterable[str]) -> Callable[[Iterable[Any]], list[bytes]]:
    """The function that writes the cells of columns of these types. It raises ValueError for text that is not Unicode."""
    writers = [WRITERS[type] for type in types]

    return lambda row: list(map(call, writers, row))


def writer(types: Sequence[str]) -> Callable[[Iterable[Any]], bytes]:
    """The function that writes one row of columns of these types."""
    write, start = cells(types), _count(len(types))
    return lambda row: start + b"".join(write(row))


def starts(columns: int, *numbers: NDArray[Any]) -> list[bytes]:
    """The beginnings of rows with this many columns: cells of whole numbers, none of them missing, given as an array for each column."""
    fields: list[tuple[str, Any]] = [("columns", ">i2")]
    for i, each in enumerate(numbers):
        fields += [(f"size{i}", ">i4"), (f"cell{i}", each.dtype.newbyteorder(">"))]
    rows = np.empty(len(numbers[0]), fields)
    rows["columns"] = columns
    for i, each in enumerate(numbers):
        rows[f"size{i}"], rows[f"cell{i}"] = each.itemsize, each
    data, size = rows.tobytes(), rows.itemsize
    return [data[at : at + size] for at in range(0, len(data), size)]


def copy(cursor: Any, table: str, columns: Iterable[str], rows: Iterable[bytes]) -> None:
    """Writes the rows. The names come from code, never from people."""
    names = ", ".join(f'"{name}"' for name in columns)
    with cursor.copy(f"COPY {table} ({names}) FROM STDIN (FORMAT BINARY)") as to:
        to.write(b"".join((HEADER, *rows, TRAILER)))
