"""How this process uses its machine; called before torch is loaded, which reads some of it at that moment."""

import ctypes
import os
import platform

from trainer.garbage import look_rarely

_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8  # malloc.h of the GNU C library
_NEVER_TRIM = 2**31 - 1


def settle() -> None:
    """By default a thread of OpenMP that waits for the others spins for milliseconds. On cores shared with the product's
    own services that keeps the awaited thread from running, and steps take several times as long; not spinning at all
    costs a wake-up per operation. A short spin was the fastest of both.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    look_rarely()
    if platform.libc_ver()[0] == "glibc":
        keep_freed_memory()


def keep_freed_memory() -> None:
    """Large tensors otherwise go back to the system when they are freed, and each new one is zeroed page by page: a
    fifth of the time of a training step on a CPU. The process then holds its peak until it ends, as it would need it
    again in the next step anyway.
    """
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_MAX, 0)
    libc.mallopt(_M_TRIM_THRESHOLD, _NEVER_TRIM)


def one_heap() -> None:
    """For runs in threads that take turns, before the first thread: glibc gives each thread a heap, and what one run has freed would
    stay there, where no other run can use it. They would hold the peak of each of them."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
