"""Reads TensorBoard's event files. Each record follows its length and a checksum, and is an event in protobuf's wire format.

Only values that a run here can hold are read: scalars and histograms in both forms, texts, and the values of the plugin of
hyperparameters. A histogram becomes its quantiles. Everything else is counted by its kind.
"""

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import distributions

LONGEST = 64_000_000  # bytes of a record: longer ones, such as videos, are skipped
TABLE = [0] * 256
for _byte in range(256):
    _value = _byte
    for _ in range(8):
        _value = (_value >> 1) ^ (0x82F63B78 if _value & 1 else 0)
    TABLE[_byte] = _value
NUMBERS = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 19: "<e"}  # kinds of tensors, and the bytes of one value
KINDS = {3: "histogram", 4: "image", 6: "audio"}
HISTOGRAM = 5
LOWEST, HIGHEST, LIMITS, COUNTS = (
    1,
    2,
    6,
    7,
)  # of a histogram: its smallest and greatest value; where its bins end; how many are in each
EVENTS = {4: "graphs", 6: "log messages", 8: "profiles", 9: "graphs"}


class Damaged(ValueError):
    """From here on, the bytes are not those of an event file."""


class Scalar(NamedTuple):
    key: str
    step: int
    time_ms: int
    value: float


def fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """(number, value) of a message: whole numbers, or bytes. Raises Damaged."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        size, at = {1: (8, at), 5: (4, at)}.get(kind) or (_varint(data, at) if kind == 2 else (-1, at))
        if size < 0 or at + size > len(data):
            raise Damaged("a message that is not whole")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 0x7F) << shift
        if not data[at] & 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at + 1
        at, shift = at + 1, shift + 7
    raise Damaged("a number that is not whole")


def checksum(data: bytes) -> int:
    """The CRC-32C of the data, masked as in these files."""
    value = 0xFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


class EventFile:
    """One file, which is read from where the last read ended. A record that is still being written is read the next time."""

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, 0
        self.config: dict[str, Any] = {}
        self.texts: dict[str, str] = {}
        self._named: set[str] = set()  # texts that were read before
        self.unsaid: Counter[str] = Counter()

    def scalars(self) -> Iterator[Scalar]:
        """The scalars after `place`. If the file is damaged, reading ends there, and `unsaid` says so."""
        try:
            for record in self._records():
                yield from self._event(memoryview(record))
        except (Damaged, UnicodeDecodeError, struct.error) as error:
            self.unsaid[f"{self.path.name} from byte {self.place:,} on: {error}"] += 1
            self.place = self.path.stat().st_size

    def _records(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            while size - self.place >= 16:
                file.seek(self.place)
                head = file.read(12)
                length, check = struct.unpack("<QI", head)
                if checksum(head[:8]) != check:
                    raise Damaged("no record of an event file begins here")
                if size - self.place < length + 16:
                    return
                if length > LONGEST:
                    self.unsaid[f"records of more than {LONGEST // 10**6} MB"] += 1
                else:
                    yield file.read(length)
                self.place += length + 16

    def _event(self, data: memoryview) -> Iterator[Scalar]:
        time, step, values = 0.0, 0, list[memoryview]()
        for number, value in fields(data):
            if number == 1:
                (time,) = struct.unpack("<d", value)
            elif number == 2:
                step = value - (1 << 64) if value >> 63 else value
            elif number == 5:
                values += [each for inner, each in fields(value) if inner == 1]
            elif number in EVENTS:
                self.unsaid[EVENTS[number]] += 1
        for each in values:
            for key, found in self._value(each):
                yield Scalar(key, step, round(time * 1000), found)

    def _value(self, data: memoryview) -> list[tuple[str, float]]:
        """The metrics of one value by their names."""
        key, plugin, content, tensor = "", "", memoryview(b""), memoryview(b"")
        for number, value in fields(data):
            if number == 1:
                key = bytes(value).decode()
            elif number == 2:
                return [(key, struct.unpack("<f", value)[0])]
            elif number == 9:
                plugin, content = _plugin(value)
            elif number == 8:
                tensor = value
            elif number == HISTOGRAM:
                return self._quantiles(key, *_bins(value))
            elif number in KINDS:
                self.unsaid[f"{KINDS[number]} of {key}"] += 1
                return []
        if plugin == "hparams":
            self.config |= _hyperparameters(content)
            return []
        return self._tensor(key, plugin, tensor)

    def _quantiles(self, key: str, edges: Sequence[float], counts: Sequence[float]) -> list[tuple[str, float]]:
        found = distributions.of_counts(edges, counts)
        if not found:
            self.unsaid[f"histograms of {key} without values"] += 1
        return [(f"{key}/{name}", value) for name, value in found.items()]

    def _tensor(self, key: str, plugin: str, data: memoryview) -> list[tuple[str, float]]:
        kind, elements, packed = 0, 1, memoryview(b"")
        for number, value in fields(data):
            if number == 1:
                kind = value
            elif number == 2:
                for inner, dimension in fields(value):
                    if inner == 2:
                        elements *= next((size for place, size in fields(dimension) if place == 1), 0)
            elif number in (4, 5, 6, 7, 10):
                packed = value if isinstance(value, memoryview) else memoryview(str(value).encode())
            elif number == 8 and plugin == "text":
                if key in self._named:  # a run has one text of each name
                    self.unsaid[f"earlier texts of {key}"] += 1
                self._named.add(key)
                self.texts[key] = bytes(value).decode(errors="replace")
                return []
        layout = NUMBERS.get(kind)
        whole = layout is not None and len(packed) == elements * struct.calcsize(layout)
        if layout and whole and plugin == "histograms" and elements % 3 == 0:
            return self._quantiles(key, *_rows(_numbers(packed, layout)))
        if layout and whole and elements == 1 and plugin in ("scalars", ""):
            return [(key, _numbers(packed, layout)[0])]
        self.unsaid[f"{plugin or 'tensor'} of {key}"] += 1
        return []


def _numbers(data: memoryview, layout: str) -> list[float]:
    return [float(number) for (number,) in struct.iter_unpack(layout, data)]


def _bins(data: memoryview) -> tuple[list[float], list[float]]:
    """(edges, counts) of a histogram. Only the ends of the bins are written, and the outer bins may reach far beyond the values."""
    found = dict(fields(data))
    low, high = (struct.unpack("<d", found.get(number, bytes(8)))[0] for number in (LOWEST, HIGHEST))
    limits, counts = (_numbers(memoryview(found.get(number, b"")), "<d") for number in (LIMITS, COUNTS))
    return [low, *(min(max(limit, low), high) for limit in limits)], counts


def _rows(numbers: Sequence[float]) -> tuple[list[float], list[float]]:
    """(edges, counts) of a histogram that is written as rows of start, end and count."""
    return [*numbers[:1], *numbers[1::3]], list(numbers[2::3])


def _plugin(data: memoryview) -> tuple[str, memoryview]:
    for number, value in fields(data):
        if number == 1:
            found = dict(fields(value))
            return bytes(found.get(1, b"")).decode(), memoryview(found.get(2, b""))
    return "", memoryview(b"")


def _hyperparameters(data: memoryview) -> dict[str, Any]:
    """The hyperparameters of the start of a session: name -> number, text or boolean."""
    found: dict[str, Any] = {}
    for number, session in fields(data):
        if number != 3:
            continue
        for place, entry in fields(session):
            if place == 1:
                pair = dict(fields(entry))
                found[bytes(pair.get(1, b"")).decode()] = _plain(memoryview(pair.get(2, b"")))
    return found


def _plain(data: memoryview) -> Any:
    for number, value in fields(data):
        if number == 2:
            return struct.unpack("<d", value)[0]
        if number == 3:
            return bytes(value).decode()
        if number == 4:
            return bool(value)
    return None


def folders(root: Path) -> dict[Path, list[Path]]:
    """Folder -> its event files, in the order of their names, which begin with their time. A folder with event files is a run."""
    files = [root] if root.is_file() else sorted(path for path in root.rglob("*tfevents*") if path.is_file())
    found: dict[Path, list[Path]] = {}
    for path in files:
        found.setdefault(path.parent, []).append(path)
    return dict(sorted(found.items()))
