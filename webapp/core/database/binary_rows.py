"""Rows of numbers from the database as arrays, in binary form: making Python objects of each number would take several times as long."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet
from numpy.typing import NDArray

HEADER = 19  # bytes before the first row
BLOCK = 65_536  # rows
NUMBERS: "dict[str, np.dtype[Any]]" = {
    "int4": np.dtype(np.int32),
    "int8": np.dtype(np.int64),
    "float8": np.dtype(np.float64),
    "timestamptz": np.dtype(np.int64),  # microseconds since 2000
}

SEND = {"timestamptz": "timestamptz_"}


def row_of(cells: Sequence[tuple[str, str]]) -> "np.dtype[Any]":
    """The binary form of a row with these cells, of which none is null: how many cells, and each behind its length."""
    behind = [[(f"_{place}", ">i4"), cell] for place, cell in enumerate(cells)]
    return np.dtype([("cells", ">i2"), *(part for parts in behind for part in parts)])


def blocks(statement: str, given: Any, row: "np.dtype[Any]") -> Iterator[NDArray[Any]]:
    """The rows of a query, in pieces; the last may be empty."""
    text = connection.ops.compose_sql(statement, given)  # type: ignore[attr-defined]  # a COPY takes no values beside it
    held, skipped = bytearray(), False
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(f"COPY ({text}) TO STDOUT (FORMAT binary)") as parts,
    ):
        for part in parts:
            held += part
            if not skipped and len(held) >= HEADER:
                del held[:HEADER]
                skipped = True
            if len(held) >= BLOCK * row.itemsize:
                yield _whole(held, row)
    yield _whole(held, row)


def sent(cells: Sequence[tuple[str, str]]) -> str:
    """The expression that puts rows with these cells, of which none is null, together to one value for `opened`: a COPY comes row by row."""
    each = (f"{SEND.get(kind, kind)}send({name})" for name, kind in cells)
    return f"string_agg({' || '.join(each)}, ''::bytea)"


def opened(value: bytes | memoryview | None, cells: Sequence[tuple[str, str]]) -> list[NDArray[Any]]:
    """The columns of such a value."""
    read = np.frombuffer(value or b"", [(name, NUMBERS[kind].newbyteorder(">")) for name, kind in cells])
    return [read[name].astype(NUMBERS[kind]) for name, kind in cells]


def packed(rows: "QuerySet[Any, Any]", kinds: Sequence[str]) -> list[NDArray[Any]]:
    """The columns of a query at once, without nulls."""
    cells = [(f"cell{place}", kind) for place, kind in enumerate(kinds)]
    try:
        statement, given = rows.query.sql_with_params()
    except EmptyResultSet:
        return opened(None, cells)
    names = ", ".join(name for name, _ in cells)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sent(cells)} FROM ({statement}) AS found({names})", given)  # noqa: S608  ours
        return opened(cursor.fetchone()[0], cells)


def _whole(copied: bytearray, row: "np.dtype[Any]") -> NDArray[Any]:
    """Takes the whole rows from the front."""
    whole = len(copied) // row.itemsize
    found = np.frombuffer(bytes(copied[: whole * row.itemsize]), row)
    del copied[: whole * row.itemsize]
    return found
