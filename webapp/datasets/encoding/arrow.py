"""Makes and reads Arrow arrays by their buffers.

`pyarrow.array`, `scalar` and `to_numpy` load pandas if it is installed. It costs every process half a second and 24 MB, and we do not use
it.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def texts(values: Iterable[str]) -> pa.StringArray:
    """An Arrow array of texts. Raises ValueError for half a surrogate pair."""
    each = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, each)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(each), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(each))])


def only(array: pa.Array, kept: NDArray[np.bool_]) -> pa.Array:
    """The values that are `kept`, unchanged."""
    if kept.all():
        return array
    bits = pa.py_buffer(np.packbits(kept, bitorder="little"))
    return array.filter(pa.Array.from_buffers(pa.bool_(), len(kept), [None, bits]))


def numbers(array: pa.Array) -> NDArray[Any]:
    """An array of whole numbers, none of them missing."""
    kind = np.dtype(str(array.type))
    return np.frombuffer(array.buffers()[1], kind, len(array), kind.itemsize * array.offset)
