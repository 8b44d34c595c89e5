"""When Python looks for garbage, in processes that load many modules: as they start, rarely; as they end, not at all."""

import atexit
import gc

RARELY = 10_000  # new objects; by default 700


def look_rarely() -> None:
    """A tenth of the time to load Django and our apps, or torch, went into looking for garbage in what had just been loaded, and a
    second of a processor into looking through all of it once more as the process ended.
    """
    gc.set_threshold(max(RARELY, gc.get_threshold()[0]))
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
