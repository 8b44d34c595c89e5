"""Sets Python's garbage collector for processes that load many modules: it runs rarely at their start, and not at their end."""

import atexit
import gc

RARELY = 10_000  # new objects between two collections; by default 700


def look_rarely() -> None:
    """Let the collector run rarely. A tenth of the time to load Django and our apps, or torch, went into collecting what had just
    been loaded, and at the end of a process a second of CPU time into one more collection.
    """
    gc.set_threshold(max(RARELY, gc.get_threshold()[0]))
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
