"""Pairwise verdicts as files write them, on one scale: -1 first is better, 0 tie, 1 second is better."""

import math
import re
from typing import Any

_WORDS = {
    **dict.fromkeys(("a", "first", "1"), -1),
    **dict.fromkeys(("b", "second", "2"), 1),
    **dict.fromkeys(("tie", "tied", "draw", "equal", "same", "c"), 0),  # C is the tie of MT-Bench's judges
}
_DECORATION = re.compile(r"^\[\[(.*)\]\]$")
_COMPARISON = re.compile(r"^([ab])\s*(>{1,2}|={1,2}|<{1,2})\s*([ab])$")
_NAMED = re.compile(r"^(?:response|model|assistant|answer|output)[ _]?(a|b|1|2)$")
_WORDED = re.compile(r"^([ab])[ _](?:is[ _])?(?:(?:much|slightly|a[ _]little)[ _])?(?:better|wins)$")
SIDE_NAMES = {-1: "A", 0: "tie", 1: "B"}
EXPECTED = 'expected "A", "B", "tie" or null'


def side(value: Any, numbers: bool = False) -> int | None:
    """The side that a verdict names; None for null. Raises ValueError for what is not a verdict.

    It reads, in upper and lower case: "A", "B", "tie"; "first", "second"; "A>B", "A>>B", "A=B", "B<A", also in double brackets; "A
    much better"; "response B". With `numbers` it also reads numbers by their sign, negative for A. Otherwise it
    refuses them: 1 and 2 name responses in some files and lie on a scale around 0 in others.
    """
    if value is None:
        return None
    if numbers and isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value):
        return (value > 0) - (value < 0)
    if not isinstance(value, str):
        raise ValueError(f"no verdict: {_told(value)}; {EXPECTED}")
    text = value.strip().lower().rstrip(".")
    if decorated := _DECORATION.match(text):
        text = decorated[1].strip()
    if text in _WORDS:
        return _WORDS[text]
    if compared := _COMPARISON.match(text):
        return _compared(*compared.groups())
    if named := _NAMED.match(text):
        return _WORDS[named[1]]
    if worded := _WORDED.match(text):
        return _WORDS[worded[1]]
    raise ValueError(f"no verdict: {_told(value)}; {EXPECTED}")


def _compared(left: str, sign: str, right: str) -> int:
    if left == right:
        raise ValueError(f"no verdict: {left}{sign}{right} compares a response with itself")
    if sign[0] == "=":
        return 0
    return _WORDS[left if sign[0] == ">" else right]


def _told(value: Any) -> str:
    """The value as an error quotes it, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
