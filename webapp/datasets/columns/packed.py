"""The small columns of a version, packed: a million examples are narrowed and counted in milliseconds.

A version never changes, so its columns are packed once, when it is made, in the order of its positions. The database keeps them as bytes; a
process that reads them keeps the latest ones in memory. Postgres would have to read the wide rows, or keep an index for every filter and
still sort.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from ..encoding import copy_format
from ..models import DatasetVersion, PackedColumn
from . import arrays
from .arrays import CODED, NAMES, Array, ColumnArray
from .filters import HARD_CONSTRAINTS, HARD_SURFACE, RANGES, Filters, Range

Mask = NDArray[np.bool_]
T = TypeVar("T")
ROWS = 20_000  # read at a time while packing
KEPT_BYTES = 128 << 20  # of packed columns in one process
ID = "id"  # the one column beside those of `arrays`
STORED = {"version_id": "bigint", "name": "varchar", "kind": "varchar", "data": "bytea", "values": "jsonb"}
_write = copy_format.writer(list(STORED.values()))


def pack(version_id: int) -> None:
    """Packs the columns of a version whose members are listed. Memory: about 70 bytes a row."""
    packer = Packer()
    for ids, rows in _chunks(version_id):
        packer.add(ids, arrays.column_arrays(rows))
    packer.save(version_id)


class Packer:
    """Packs the columns of rows, which must come in the order of their positions."""

    def __init__(self) -> None:
        self._books: dict[str, dict[Any, int]] = {name: {} for name in CODED}
        self._parts: dict[str, list[Array]] = {name: [] for name in (ID, *NAMES)}

    def add(self, ids: Array, columns: Mapping[str, ColumnArray], kept: Mask | slice = slice(None)) -> None:
        """Adds the `kept` ones of the examples with these ids and columns."""
        self._parts[ID].append(ids[kept])
        for name, column in columns.items():
            numbers = column.numbers[kept]
            self._parts[name].append(self._coded(name, numbers, column.values) if name in CODED else numbers)

    def _coded(self, name: str, codes: Array, values: list[Any]) -> Array:
        """The codes in the whole version for the codes of a part of it."""
        book = self._books[name]
        there = np.zeros(len(values), np.int64)
        for code in np.unique(codes).tolist():
            there[code] = book.setdefault(values[code], len(book))
        return there[codes].astype(arrays.smallest_type(len(book)))

    @transaction.atomic
    def save(self, version_id: int) -> None:
        """Writes the columns one by one, freeing each before the next, and as bytes: in the text of a statement they would take twice their
        size, several times."""
        PackedColumn.objects.filter(version_id=version_id).delete()
        for name in (ID, *NAMES):
            parts = self._parts.pop(name)
            array = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
            values = [list(each) if isinstance(each, tuple) else each for each in self._books.get(name, {})]
            with connection.cursor() as cursor:
                row = _write((version_id, name, array.dtype.str, array.tobytes(), values))
                copy_format.copy(cursor, "datasets_packedcolumn", STORED, [row])


def _chunks(version_id: int) -> Iterable[tuple[Array, list[tuple[Any, ...]]]]:
    """The ids and the values of NAMES, some examples at a time."""
    names = ", ".join(f"example.{name}" for name in NAMES)
    sql = f"""
        SELECT example.id, {names} FROM datasets_versionmember AS member JOIN datasets_example AS example
        ON example.id = member.example_id
        WHERE member.version_id = %s AND member.position >= %s AND member.position < %s ORDER BY member.position
    """  # noqa: S608  names of columns
    first = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(sql, [version_id, first, first + ROWS])
            rows = cursor.fetchall()
        if not rows:
            return
        yield np.array([id for id, *_ in rows], np.int64), [values for _, *values in rows]
        first += ROWS


class Columns:
    """The packed columns of one version, each read when it is first used."""

    def __init__(self, version_id: int, size: int) -> None:
        self.version_id = version_id
        self.size = size
        self._arrays: dict[str, Array] = {}
        self._values: dict[str, list[Any]] = {}
        self._made: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], T]) -> T:
        """The result of `make`, computed when it is first used under this name."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    def __getitem__(self, name: str) -> Array:
        if name not in self._arrays:
            self._read(name)
        return self._arrays[name]

    def values(self, name: str) -> list[Any]:
        """The values for the codes of a coded column."""
        if name not in self._values:
            self._read(name)
        return self._values[name]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in list(self._arrays.values()))

    def _read(self, name: str) -> None:
        found = PackedColumn.objects.filter(version_id=self.version_id, name=name).first()
        if found is None:
            pack(self.version_id)
            found = PackedColumn.objects.get(version_id=self.version_id, name=name)
        self._values[name] = found.values
        self._arrays[name] = np.frombuffer(found.data, found.kind)


_kept: "OrderedDict[tuple[int, str], Columns]" = OrderedDict()
_lock = Lock()


def columns(version: DatasetVersion) -> Columns:
    """The version's columns, from memory if this process has them."""
    key = (version.pk, version.digest)
    with _lock:
        found = _kept.pop(key, None) or Columns(version.pk, version.counts.get("examples", 0))
        _kept[key] = found
        while len(_kept) > 1 and sum(each.nbytes for each in _kept.values()) > KEPT_BYTES:
            _kept.popitem(last=False)
    return found


@dataclass(frozen=True, eq=False)
class SplitColumns:
    """Arrays by position: the example's id, the hashes of its prompt and group, and whether it is on each side of the split."""

    ids: NDArray[np.int64]
    prompts: NDArray[np.int64]
    groups: NDArray[np.int64]
    train: Mask
    heldout: Mask


SPLIT_COLUMNS = (ID, "prompt_hash", "group_hash", "split")


def split_columns(version_ids: Iterable[int]) -> dict[int, SplitColumns]:
    """The columns of these versions, in one query; versions that were packed before these columns existed are packed again."""
    wanted = list(version_ids)
    arrays = _stored(wanted)
    if lacking := [each for each in wanted if len(arrays.get(each, {})) < len(SPLIT_COLUMNS)]:
        for version_id in lacking:
            pack(version_id)
        arrays |= _stored(lacking)
    return {each: _split_columns(arrays[each]) for each in wanted}


def _stored(version_ids: list[int]) -> dict[int, dict[str, PackedColumn]]:
    arrays: dict[int, dict[str, PackedColumn]] = {}
    for row in PackedColumn.objects.filter(version_id__in=version_ids, name__in=SPLIT_COLUMNS):
        arrays.setdefault(row.version_id, {})[row.name] = row
    return arrays


def _split_columns(rows: dict[str, PackedColumn]) -> SplitColumns:
    ids, prompts, groups, codes = (np.frombuffer(rows[name].data, rows[name].kind) for name in SPLIT_COLUMNS)
    values = np.array(rows["split"].values or [""])
    sides = values[codes] if len(codes) else values[:0]
    return SplitColumns(ids, prompts, groups, sides == "train", sides == "heldout")


def mask(held: Columns, filters: Filters) -> Mask | None:
    """The positions that the filters leave, without the filters on text and pass rates; None if there are no others."""
    parts: list[Mask] = []
    for name in ("domain", "source"):
        if value := getattr(filters, name):
            parts.append(_coded(held, name, value.__eq__))
    if filters.split:
        wanted = "" if filters.split == "none" else filters.split
        parts.append(_coded(held, "split", lambda each: bool(each == wanted)))
    if filters.verifier:
        parts.append(_coded(held, "verifiers", partial(_holds, filters.verifier)))
    for mark in (f"kind:{filters.kind}" if filters.kind else "", filters.slice):
        if mark:
            parts.append(_coded(held, "marks", partial(_holds, mark)))
    if filters.hard:
        parts.append(_hard(held, filters.hard))
    for name, asked in (("criteria_count", filters.rubric), ("preference_count", filters.preferences)):
        if asked is not None:
            parts.append((held[name] > 0) == asked)
    if filters.label:
        parts.append(_label(held["strength"], filters.label))
    for name, (column, _, whole) in RANGES.items():
        if name != "pass_rate" and (ends := getattr(filters, name)):
            parts.append(within(held[column], ends, whole))
    return np.logical_and.reduce(parts) if parts else None


def _holds(mark: str, marks: list[str]) -> bool:
    return mark in marks


def _coded(held: Columns, name: str, wanted: Callable[[Any], bool]) -> Mask:
    chosen = np.array([wanted(each) for each in held.values(name)], bool)
    codes = held[name]
    return chosen[codes] if len(chosen) else np.zeros(len(codes), bool)


def _hard(held: Columns, rule: str) -> Mask:
    complex_ = held["constraints"] >= HARD_CONSTRAINTS
    surface = _coded(held, "marks", lambda each: any(mark in each for mark in HARD_SURFACE))
    return complex_ & surface if rule == "all" else complex_ | surface


def _label(strength: Array, label: str) -> Mask:
    if label == "none":
        return np.isnan(strength)
    sides: dict[str, Mask] = {"first": strength < 0, "second": strength > 0, "tie": strength == 0}
    return sides[label]


def within(values: Array, ends: Range, whole: bool) -> Mask:
    """The values in the range; a missing value is in no range."""
    low, high = ends
    kept = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), bool)
    if low is not None:
        kept &= values >= np.float32(low)
    if high is not None:
        kept &= (values <= np.float32(high)) if whole else (values < np.float32(high))
    return kept
