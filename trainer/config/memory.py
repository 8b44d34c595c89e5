"""Whether a run ended for want of memory. What to lower then, a recipe's config knows itself (`memory_knobs`)."""


def is_shortage(error: str) -> bool:
    """Whether these are the words of an allocator that has failed: Python's, or torch's on CPU or GPU."""
    return "MemoryError" in error or "allocate memory" in error or "out of memory" in error.lower()
