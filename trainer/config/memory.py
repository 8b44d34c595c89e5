"""Whether a run ended because memory ran out. The recipe's config says what to lower then (`memory_knobs`)."""


def is_shortage(error: str) -> bool:
    """Whether the text is the error of an allocator: Python's, or torch's on CPU or GPU."""
    return "MemoryError" in error or "allocate memory" in error or "out of memory" in error.lower()
