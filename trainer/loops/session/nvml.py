"""Reads the load of the machine's GPUs from NVIDIA's library (NVML). No package is needed: the driver contains the library."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

LIBRARY = "libnvidia-ml.so.1"
VISIBLE = "CUDA_VISIBLE_DEVICES"
_DONE = 0


class GpuUse(NamedTuple):
    """Shares from 0 to 1. None: the GPU does not tell, as parts of a GPU (MIG) do not tell how busy they are."""

    busy: float | None
    memory: float | None


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Nvml:
    """The GPUs that this process may use. If it may use none, because its workers have them, all GPUs of the machine."""

    def __init__(self, library: Any) -> None:
        """Raises OSError if the driver does not answer."""
        self._library = library
        if library.nvmlInit_v2() != _DONE:
            raise OSError("NVML does not start")
        self._devices = list(self._visible()) or list(self._all())

    @classmethod
    def found(cls) -> "Nvml | None":
        """None on a machine without GPUs of NVIDIA."""
        with suppress(OSError, AttributeError):
            found = cls(ctypes.CDLL(LIBRARY))
            return found if found._devices else None
        return None

    def look(self) -> list[GpuUse]:
        return [GpuUse(self._busy(device), self._memory(device)) for device in self._devices]

    def _busy(self, device: ctypes.c_void_p) -> float | None:
        told = _Utilisation()
        done = self._library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(told)) == _DONE
        return told.gpu / 100 if done else None

    def _memory(self, device: ctypes.c_void_p) -> float | None:
        told = _Memory()
        done = self._library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(told)) == _DONE
        return told.used / told.total if done and told.total else None

    def _visible(self) -> Iterator[ctypes.c_void_p]:
        for name in filter(None, map(str.strip, os.environ.get(VISIBLE, "").split(","))):
            device = ctypes.c_void_p()
            if name.isdigit():
                done = self._library.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(device))
            else:
                done = self._library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(device))
            if done == _DONE:
                yield device

    def _all(self) -> Iterator[ctypes.c_void_p]:
        count = ctypes.c_uint()
        self._library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for place in range(count.value):
            device = ctypes.c_void_p()
            if self._library.nvmlDeviceGetHandleByIndex_v2(place, ctypes.byref(device)) == _DONE:
                yield device
