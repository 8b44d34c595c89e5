"""Rows in the binary form of Postgres' COPY: a third of the server's work is parsing text that we have taken apart already.

A column is written as its length and its bytes, missing values as length -1 (Postgres documentation, COPY, "Binary
Format").
"""

from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import Any

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
NULL = b"\xff\xff\xff\xff"
TEXT_OID = 25

_count = Struct(">h").pack
_length = Struct(">i").pack
_int = Struct(">ii").pack
_long = Struct(">iq").pack
_double = Struct(">id").pack
_array = Struct(">iiIii").pack  # dimensions, whether it holds NULL, type of the elements, size, lower bound
EMPTY = _length(12) + Struct(">iiI").pack(0, 0, TEXT_OID)  # an array of no dimensions


def _text(value: str) -> bytes:
    data = value.encode()
    return _length(len(data)) + data


def _texts(values: list[str]) -> bytes:
    if not values:
        return EMPTY
    data = _array(1, 0, TEXT_OID, len(values), 1) + b"".join(map(_text, values))
    return _length(len(data)) + data


def _bytes(value: bytes) -> bytes:
    return _length(len(value)) + value


WRITERS: Mapping[str, Callable[[Any], bytes]] = {
    "text": _text,
    "int": lambda value: _int(4, value),
    "bigint": lambda value: _long(8, value),
    "double precision": lambda value: _double(8, value),
    "text[]": _texts,
    "bytea": _bytes,
}


def writer(types: Iterable[str]) -> Callable[[Iterable[Any]], bytes]:
    """The function that writes one row of columns of these types. It raises ValueError for text that is not Unicode."""
    writers = [WRITERS[type] for type in types]
    start = _count(len(writers))

    def write(row: Iterable[Any]) -> bytes:
        cells = [NULL if value is None else write(value) for write, value in zip(writers, row, strict=True)]
        return start + b"".join(cells)

    return write
