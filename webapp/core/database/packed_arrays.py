"""Arrays as parameters of prepared statements, in Postgres' binary form: whole columns are packed at once.

The driver packs a list element by element in Python, which takes longer than the rest of a batch of log lines. A placeholder of such an
array is `%(name)b` and needs a cast to the type of the array, because the type is not sent.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

INT, BIGINT, TEXT, DOUBLE, TIME, JSONB = 23, 20, 25, 701, 1184, 3802
MISSING = struct.pack(">i", -1)
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_SIZE, _DOUBLE = struct.Struct(">i").pack, struct.Struct(">id").pack
# dimensions, whether values are missing, type of the elements, their number, lower bound
_HEAD = struct.Struct(">iiiii").pack


@dataclass(frozen=True)
class PackedArray:
    data: bytes


class _PackedDumper(Dumper):
    format = Format.BINARY
    oid = 0  # the cast in the statement says it

    def dump(self, obj: PackedArray) -> Buffer:
        return obj.data


psycopg.adapters.register_dumper(PackedArray, _PackedDumper)


def integers(values: Sequence[int]) -> PackedArray:
    return _whole(values, INT, ">i4")


def bigints(values: Sequence[int]) -> PackedArray:
    return _whole(values, BIGINT, ">i8")


def times(values: Iterable[datetime]) -> PackedArray:
    return _whole([(time - EPOCH) // timedelta(microseconds=1) for time in values], TIME, ">i8")


def doubles(values: Sequence[float | None]) -> PackedArray:
    """Numbers, which may be NaN or infinite; None: missing."""
    return _array(DOUBLE, [MISSING if value is None else _DOUBLE(8, value) for value in values])


def texts(values: Iterable[str]) -> PackedArray:
    return _array(TEXT, [_SIZE(len(data)) + data for data in map(str.encode, values)])


def documents(values: Iterable[bytes | None]) -> PackedArray:
    """JSON, as jsonb[]; None: missing."""
    return _array(JSONB, [MISSING if data is None else _SIZE(1 + len(data)) + b"\x01" + data for data in values])


def _whole(values: Sequence[int], oid: int, kind: str) -> PackedArray:
    elements = np.empty(len(values), [("size", ">i4"), ("value", kind)])
    elements["size"], elements["value"] = elements.dtype["value"].itemsize, values
    return PackedArray(_HEAD(1, 0, oid, len(values), 1) + elements.tobytes())


def _array(oid: int, elements: list[bytes]) -> PackedArray:
    return PackedArray(_HEAD(1, 1, oid, len(elements), 1) + b"".join(elements))
