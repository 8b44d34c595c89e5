"""JSON of the command line: lines read with errors that name file, line and field, and the one object printed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from django.core.management.base import CommandError, OutputWrapper

from trainer.contracts.plurals import with_noun

T = TypeVar("T")
MAX_TOLD = 20


def as_json_text(told: Any) -> str:
    """The object that a command prints. Readable if it can be; half a character, which JSON may hold, is escaped."""
    text = json.dumps(told, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(told, allow_nan=False)
    return text


class Problems:
    """The problems of lines: the first ones in full, the others as a number."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.count = 0

    def add(self, where: str, reason: str) -> None:
        self.count += 1
        if len(self.told) < MAX_TOLD:
            self.told.append(f"{where}: {reason}")

    def settle(self, told_on: OutputWrapper | None = None) -> None:
        """Raises CommandError with every problem; if they are `told_on` instead, the good lines count."""
        more = self.count - len(self.told)
        told = "\n".join([*self.told, *([f"and {more:,} more lines with problems"] if more else [])])
        if told and told_on is None:
            raise CommandError(told)
        if told and told_on is not None:
            told_on.write(f"{told}\n{with_noun(self.count, 'lines')} left out")


class Lines(Generic[T]):
    """The lines of a file one after the other; those that cannot be used are remembered and passed over.

    `parse` raises `problem` for a line it cannot use. Code that prints from them first settles `problems`, so that nothing is printed from
    half a file unless somebody asks for it.
    """

    def __init__(self, path: Path, parse: Callable[[Any], T], problem: type[ValueError]) -> None:
        self.path, self._parse, self._problem = path, parse, problem
        self.problems = Problems()
        self.good = 0

    def __iter__(self) -> Iterator[tuple[int, T]]:
        """(line number, parsed value) of every good line that is not blank. Raises CommandError for an unreadable file."""
        try:
            with self.path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    if line.strip() and (found := self._parsed(number, line)) is not None:
                        self.good += 1
                        yield number, found
        except OSError as error:
            raise CommandError(f"{self.path}: cannot be read: {error.strerror}") from error

    def bad(self, number: int, reason: str) -> None:
        """Records a good line that turned out to be wrong."""
        self.good -= 1
        self.problems.add(f"{self.path}, line {number}", reason)

    def _parsed(self, number: int, line: bytes) -> T | None:
        try:
            return self._parse(json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8")))
        except self._problem as error:
            reason = str(error)
        except UnicodeDecodeError as error:
            reason = f"is not UTF-8 text: {error.reason}"
        except json.JSONDecodeError as error:
            reason = f"not JSON: {error.msg} at column {error.pos + 1}"  # its own line and column count from this line
        except (ValueError, RecursionError) as error:
            reason = f"not JSON: {error}"
        self.problems.add(f"{self.path}, line {number}", reason)
        return None
