"""Sets the threads and the memory allocator of this process; called before torch is loaded, because torch reads some settings at that
moment."""

import ctypes
import os
import platform

from trainer.garbage import look_rarely

_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8  # malloc.h of the GNU C library
_NEVER_TRIM = 2**31 - 1


def settle() -> None:
    """Set how long a waiting thread of OpenMP spins, how often garbage is collected, and what happens to freed memory.

    By default such a thread spins for milliseconds. On cores shared with the product's own services this keeps the awaited thread
    from running, and steps take several times as long; without spinning each operation costs a wake-up. A short spin was faster than
    both.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    look_rarely()
    if platform.libc_ver()[0] == "glibc":
        keep_freed_memory()


def keep_freed_memory() -> None:
    """Keep freed memory in the process. Otherwise large tensors go back to the system when they are freed, and each new one is zeroed page
    by page: a fifth of the time of a training step on a CPU. The process then holds its peak until it ends; it would need this memory
    in the next step anyway.
    """
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_MAX, 0)
    libc.mallopt(_M_TRIM_THRESHOLD, _NEVER_TRIM)


def one_heap() -> None:
    """Use one heap, for runs in threads that take turns; called before the first thread. glibc gives each thread a heap, and memory
    that one run has freed would stay there, unusable for the others. The process would hold the peak of each run.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
