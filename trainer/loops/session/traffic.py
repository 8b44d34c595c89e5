"""Counts the bytes of the machine's disks and network, by the counters of the system."""

import time
from contextlib import suppress

import psutil

_MIB = 2.0**20
OWN = "lo"
"""The network inside the machine: processes of one machine talk over it, and nothing leaves."""


class Traffic:
    """Rates from one look to the next. What the system does not count, as in some containers, is missing."""

    def __init__(self) -> None:
        self._at, self._moved = time.monotonic(), _moved()

    def metrics(self) -> dict[str, float]:
        """`perf/disk_read`, `perf/disk_written`, `perf/network_received`, `perf/network_sent`: MiB per second of the whole machine."""
        now, moved = time.monotonic(), _moved()
        seconds = max(now - self._at, 1e-9)
        rates = {key: max(moved[key] - self._moved[key], 0) / _MIB / seconds for key in moved.keys() & self._moved}
        self._at, self._moved = now, moved
        return rates


def _moved() -> dict[str, int]:
    """Bytes since the machine started."""
    moved: dict[str, int] = {}
    with suppress(OSError, RuntimeError):  # the system has no such counters
        if disks := psutil.disk_io_counters():
            moved |= {"perf/disk_read": disks.read_bytes, "perf/disk_written": disks.write_bytes}
    with suppress(OSError, RuntimeError):
        if links := [each for name, each in psutil.net_io_counters(pernic=True).items() if name != OWN]:
            moved["perf/network_received"] = sum(each.bytes_recv for each in links)
            moved["perf/network_sent"] = sum(each.bytes_sent for each in links)
    return moved
