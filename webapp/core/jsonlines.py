"""Reading JSON Lines given on a command line, with errors that name file, line and field."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from django.core.management.base import CommandError

T = TypeVar("T")
MAX_TOLD = 20


def parsed(path: Path, parse: Callable[[Any], T], problem: type[ValueError]) -> list[tuple[int, T]]:
    """(line number, parsed value) of every line that is not blank, once the whole file has been read.

    `parse` raises `problem` for a line it cannot use. Raises CommandError naming every bad line, so that nothing is
    computed, or printed, from half a file.
    """
    found: list[tuple[int, T]] = []
    problems: list[tuple[int, str]] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    found.append((number, parse(json.loads(line))))
                except problem as error:
                    problems.append((number, str(error)))
                except (ValueError, RecursionError) as error:
                    problems.append((number, f"not JSON: {error}"))
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: is not UTF-8 text: {error.reason}") from error
    refuse(path, problems)
    return found


def refuse(path: Path, problems: Iterable[tuple[int, str]]) -> None:
    """Raises CommandError for (line, problem)s, the first ones in full and the rest by their number; none is fine."""
    told = [f"{path}, line {number}: {text}" for number, text in problems]
    if len(told) > MAX_TOLD:
        told = [*told[:MAX_TOLD], f"{path}: and {len(told) - MAX_TOLD} more lines with problems"]
    if told:
        raise CommandError("\n".join(told))
