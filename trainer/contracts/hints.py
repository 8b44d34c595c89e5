"""Reads the pass rate of an example, and the reasoning that leads to its answer."""

from .example import Example


def pass_rate_of(example: Example) -> float | None:
    """The share of a model's answers that were right, as a probe has measured it (`meta.pass_rate`); None if it was not measured."""
    value = example.meta.get("pass_rate")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)


def reasoning_of(example: Example) -> str:
    """The reasoning whose beginning a hint shows: `meta.reasoning`, else the reference answer; empty if there is neither."""
    written = example.meta.get("reasoning")
    return written.strip() if isinstance(written, str) and written.strip() else (example.reference or "").strip()
