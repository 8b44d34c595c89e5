"""Reading JSON Lines given on a command line, with errors that name file and line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError


def read(path: Path) -> Iterator[tuple[int, Any]]:
    """(line number, value) of every line that is not blank. Raises CommandError naming the line that is not JSON."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, _parse(path, number, line)
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: is not UTF-8 text: {error.reason}") from error


def _parse(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise CommandError(f"{path}, line {number}: not JSON: {error}") from error
