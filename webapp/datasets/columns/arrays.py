"""The small columns of many examples as arrays of numbers: lists filter by them, and histograms are drawn from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .derive import COLUMNS

Array = NDArray[Any]
# codes into `values`, whole numbers, numbers that may be missing (then NaN), and hashes of 64 bits
CODED = ("split", "domain", "source", "marks", "verifiers")
WHOLE = ("criteria_count", "preference_count", "response_count", "prompt_length", "constraints")
HASHES = ("prompt_hash", "group_hash")
REAL = ("response_length", "length_ratio", "strength", "agreement", "pass_rate")
NAMES = (*CODED, *WHOLE, *REAL, *HASHES)
packed = itemgetter(*(list(COLUMNS).index(name) for name in NAMES))  # takes these from the values of COLUMNS


@dataclass(frozen=True)
class ColumnArray:
    """One column; if it has codes, value i is `values[codes[i]]`, with lists as tuples."""

    numbers: Array
    values: list[Any] = field(default_factory=list)


def column_arrays(rows: Sequence[tuple[Any, ...]]) -> dict[str, ColumnArray]:
    """The columns of rows of NAMES; nothing for no rows."""
    columns = zip(NAMES, zip(*rows, strict=True), strict=True) if rows else ()
    return {name: _column(name, cells) for name, cells in columns}


def _column(name: str, cells: tuple[Any, ...]) -> ColumnArray:
    if name in REAL:
        return ColumnArray(np.array(cells, np.float32))  # None becomes NaN
    if name in HASHES:
        return ColumnArray(np.array(cells, np.int64))
    if name in WHOLE:
        return ColumnArray(np.array(cells, smallest_type(max(cells))))
    book: dict[Any, int] = {}
    hashable = [tuple(cell) for cell in cells] if isinstance(cells[0], list) else cells
    codes = [book.setdefault(cell, len(book)) for cell in hashable]
    return ColumnArray(np.array(codes, smallest_type(len(book))), list(book))


def smallest_type(most: int) -> np.dtype[Any]:
    """The smallest type of whole numbers from 0 to `most`."""
    return np.min_scalar_type(most)
