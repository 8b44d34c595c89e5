"""`python -m trainer formula NAME FILE.json`: one formula on inputs of your own.

FILE ("-": standard input) holds one JSON object, the inputs by name. Prints {"value": ...}; if the formula has no value,
it is null, and "why" gives the reason. Bad input: one line on standard error that names the field, exit status 2.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .base import Formula, InputInvalid
from .registry import FORMULAS

USAGE = "usage: python -m trainer formula NAME FILE.json"


def main(argv: Sequence[str]) -> int:
    """`argv` is [NAME, FILE], or empty for the list of formulas. Returns the exit status."""
    if list(argv) in ([], ["-h"], ["--help"]):
        print("\n\n".join([USAGE, (__doc__ or "").partition("\n\n")[2].strip(), listing()]))
        return 0
    try:
        if len(argv) != 2:
            raise InputInvalid("arguments", f"expected NAME and FILE, found {len(argv)}; {USAGE}")
        with np.errstate(all="ignore"):  # the answer itself says if a value is not finite
            print(json.dumps(_named(argv[0]).evaluate(_read(argv[1])), allow_nan=False))
    except InputInvalid as error:
        print("error:", *error.problem.split(), file=sys.stderr)
        return 2
    return 0


def listing() -> str:
    """Every formula with its inputs and one line of explanation."""
    return "\n".join(f"{each.usage()}\n    {each.summary}" for each in FORMULAS.values())


def _named(name: str) -> Formula:
    if name not in FORMULAS:
        raise InputInvalid("NAME", f"unknown formula {name!r}; known: {', '.join(FORMULAS)}")
    return FORMULAS[name]


def _read(name: str) -> Any:
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputInvalid("FILE", f"cannot read {name!r}: {getattr(error, 'strerror', None) or error}") from error
    try:
        return json.loads(text, object_pairs_hook=_once)
    except InputInvalid:
        raise
    except (ValueError, RecursionError) as error:
        raise InputInvalid("FILE", f"{name!r} is not JSON: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as an object. Raises InputInvalid if a key is there twice, because only one can be meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise InputInvalid(next(key for key in keys if keys.count(key) > 1), "is twice in one object")
    return found
