"""Pairwise verdicts as they come in files, reduced to one scale: -1 first is better, 0 tie, 1 second is better."""

import re
from typing import Any

_WORDS = {"a": -1, "first": -1, "1": -1, "b": 1, "second": 1, "2": 1, "tie": 0, "equal": 0, "same": 0, "c": 0}
_COMPARISON = re.compile(r"^([ab])\s*(>{1,2}|={1,2}|<{1,2})\s*([ab])$", re.IGNORECASE)
_WORDED = re.compile(r"^([ab])[ _](?:is )?(?:much|slightly|a little)?[ _]?better$", re.IGNORECASE)


def side(value: Any) -> int | None:
    """The side a verdict names; None for null. Raises ValueError for what is no verdict.

    Understood: "A", "B", "tie"; "A>B", "A>>B", "A=B", "B<A"; "A much better"; numbers by their sign, negative for A.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f'no verdict: {value!r}; expected "A", "B", "tie" or null')
    if isinstance(value, int | float):
        return (value > 0) - (value < 0)
    text = value.strip().lower()
    if text in _WORDS:
        return _WORDS[text]
    if compared := _COMPARISON.match(text):
        return _compared(*compared.groups())
    if worded := _WORDED.match(text):
        return -1 if worded[1] == "a" else 1
    raise ValueError(f'no verdict: {value!r}; expected "A", "B", "tie" or null')


def _compared(left: str, sign: str, right: str) -> int:
    if left == right:
        raise ValueError(f"no verdict: {left}{sign}{right} compares a response with itself")
    if sign[0] == "=":
        return 0
    winner = left if sign[0] == ">" else right
    return -1 if winner == "a" else 1
