"""What an example knows of its own difficulty, and of the way to its answer."""

from .example import Example


def pass_rate_of(example: Example) -> float | None:
    """The share of a model's answers to it that were right, as a probe has measured it (`meta.pass_rate`); None where
    nobody has."""
    value = example.meta.get("pass_rate")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)


def reasoning_of(example: Example) -> str:
    """The way to the answer, which a hint shows the beginning of: `meta.reasoning`, else the reference. Empty for none."""
    written = example.meta.get("reasoning")
    return written.strip() if isinstance(written, str) and written.strip() else (example.reference or "").strip()
