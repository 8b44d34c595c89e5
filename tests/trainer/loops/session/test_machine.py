"""What a run says of its machine: its GPUs by a library that a fake replaces here, its disks and network by counters."""

import ctypes
import time
from types import SimpleNamespace

import psutil
import pytest

from tests.timeouts import SECONDS
from trainer.loops.session import machine, nvml, traffic
from trainer.loops.session.gpus import GpuWatch
from trainer.loops.session.nvml import GpuUse, Nvml

GIB = 2**30
REFUSED = 3  # the code for what a GPU does not support


class FakeLibrary:
    """NVML with GPUs of 80 GiB. `gpus`: (percent busy, GiB used) of each; None if the GPU does not tell."""

    def __init__(self, *gpus: tuple[int | None, int], starts: int = 0) -> None:
        self.gpus, self.starts = list(gpus), starts

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return self.starts

    def nvmlDeviceGetCount_v2(self, count) -> int:  # noqa: N802
        count._obj.value = len(self.gpus)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, place: int, device) -> int:  # noqa: N802
        device._obj.value = place + 1
        return 0 if place < len(self.gpus) else REFUSED

    def nvmlDeviceGetHandleByUUID(self, name: bytes, device) -> int:  # noqa: N802
        device._obj.value = int(name.removeprefix(b"GPU-"))
        return 0

    def nvmlDeviceGetUtilizationRates(self, device, told) -> int:  # noqa: N802
        busy = self.gpus[device.value - 1][0]
        told._obj.gpu = busy or 0
        return 0 if busy is not None else REFUSED

    def nvmlDeviceGetMemoryInfo(self, device, told) -> int:  # noqa: N802
        told._obj.total, told._obj.used = 80 * GIB, self.gpus[device.value - 1][1] * GIB
        return 0


@pytest.mark.parametrize(
    ("visible", "wanted"),
    [
        (None, [0.9, 0.1]),
        ("", [0.9, 0.1]),  # workers have the GPUs
        ("1", [0.1]),
        ("1,0", [0.1, 0.9]),
        ("GPU-2", [0.1]),
        ("7", [0.9, 0.1]),  # not there
    ],
)
def test_the_gpus_are_those_of_the_process_or_else_all(monkeypatch, visible, wanted):
    monkeypatch.delenv(nvml.VISIBLE, raising=False)
    if visible is not None:
        monkeypatch.setenv(nvml.VISIBLE, visible)
    found = Nvml(FakeLibrary((90, 40), (10, 0)))
    assert [use.busy for use in found.look()] == wanted


def test_what_a_gpu_does_not_tell_is_missing():
    assert Nvml(FakeLibrary((None, 20))).look() == [GpuUse(None, 0.25)]


@pytest.mark.parametrize("library", [OSError("no such file"), FakeLibrary(), FakeLibrary((1, 1), starts=9)])
def test_without_a_gpu_there_is_nothing_to_tell_and_no_thread(monkeypatch, library):
    def load(name: str):
        assert name == "libnvidia-ml.so.1"
        if isinstance(library, OSError):
            raise library
        return library

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert Nvml.found() is None and GpuWatch(None).metrics() == {}


def looked(watch: GpuWatch) -> None:
    """Waits until the thread has looked twenty times."""
    end = time.monotonic() + SECONDS
    while len(watch._seen) < 40:  # two GPUs
        assert time.monotonic() < end
        time.sleep(0.001)


def test_the_means_are_over_the_time_since_the_last_question():
    library = FakeLibrary((100, 40), (None, 0))
    watch = GpuWatch(Nvml(library), period_s=0.001)
    looked(watch)
    assert watch.metrics() == {"perf/gpu_busy": 1.0, "perf/gpu_memory": 0.25}
    library.gpus = [(0, 0), (None, 0)]
    looked(watch)
    watch.metrics()
    looked(watch)
    assert watch.metrics() == {"perf/gpu_busy": 0.0, "perf/gpu_memory": 0.0}
    watch.close()


def test_a_step_that_is_shorter_than_a_look_is_looked_at_once():
    watch = GpuWatch(Nvml(FakeLibrary((30, 8))), period_s=1_000)
    assert watch.metrics() == {"perf/gpu_busy": 0.3, "perf/gpu_memory": 0.1}
    watch.close()


def test_a_run_tells_of_its_gpus_beside_its_processors(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: FakeLibrary((50, 60)))
    found = machine.Machine()
    told = found.metrics()
    found.close()
    assert told["perf/gpu_busy"] == 0.5 and told["perf/gpu_memory"] == 0.75 and told["perf/machine_memory"] > 0


def test_rates_are_what_was_moved_since_the_last_look(monkeypatch):
    now = [100.0]
    disks = SimpleNamespace(read_bytes=0, write_bytes=5 * 2**20)
    links = {
        "lo": SimpleNamespace(bytes_recv=10**12, bytes_sent=10**12),
        "eth0": SimpleNamespace(bytes_recv=0, bytes_sent=0),
        "eth1": SimpleNamespace(bytes_recv=2**20, bytes_sent=0),
    }
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(psutil, "disk_io_counters", lambda: disks)
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic: links)
    looks = traffic.Traffic()
    now[0] += 4.0
    disks.write_bytes += 8 * 2**20
    links["eth0"].bytes_recv += 2 * 2**20
    links["eth1"].bytes_sent += 2**20
    assert looks.metrics() == {
        "perf/disk_read": 0.0, "perf/disk_written": 2.0, "perf/network_received": 0.5, "perf/network_sent": 0.25,
    }  # fmt: skip
    now[0] += 4.0
    assert set(looks.metrics().values()) == {0.0}


def test_what_the_system_does_not_count_is_missing(monkeypatch):
    def refuse(**_):
        raise RuntimeError("no physical disk")

    monkeypatch.setattr(psutil, "disk_io_counters", lambda: None)
    monkeypatch.setattr(psutil, "net_io_counters", refuse)
    assert traffic.Traffic().metrics() == {}
