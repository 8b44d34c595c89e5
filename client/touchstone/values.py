"""Turns values into those that the server takes."""

import math
import numbers
from collections.abc import Iterator, Mapping
from typing import Any


def flatten(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """`{"optim": {"lr": 1}}` as `optim.lr`."""
    for key, value in values.items():
        path = f"{before}.{key}" if before else str(key)
        if isinstance(value, Mapping) and value:
            yield from flatten(value, path)
        else:
            yield path, value


def number(value: Any) -> float | None:
    """The number in any object that holds one number: also a boolean, and a tensor or array with one element."""
    if isinstance(value, numbers.Real):  # bool and numpy's too
        return float(value)
    if getattr(value, "shape", None) == () or getattr(value, "size", None) == 1 or _one_element(value):
        try:
            return float(value.item())
        except (AttributeError, TypeError, ValueError):
            return None
    return None


def _one_element(value: Any) -> bool:
    return callable(getattr(value, "numel", None)) and value.numel() == 1


def word(value: float) -> float | str:
    """A number that is not finite as a word, because JSON has none for it and the protocol does."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
