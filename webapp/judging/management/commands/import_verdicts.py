"""`manage.py import_verdicts FILE`: verdicts that judges have given elsewhere, and what they say of them, as JSON."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError

from webapp.core.jsonlines import MAX_TOLD
from webapp.datasets.importers.bundle import Bundle
from webapp.judging.recorded import REGISTRY, Pairwise, Record, RowProblem, UnknownFormat, detect, read
from webapp.judging.recorded.report import report

AUTO = "auto"


class Command(BaseCommand):
    requires_system_checks: ClassVar[list[str]] = []  # reads a file, nothing else
    help = "Reads recorded verdicts (a file, folder or zip archive) and prints one JSON object. " + "; ".join(
        f"{each.name}: {each.help}" for each in REGISTRY.values()
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--format", choices=[AUTO, *REGISTRY], default=AUTO)

    def handle(self, *args: Any, file: Path, format: str, **options: Any) -> None:
        try:
            chosen = detect(Bundle(file)) if format == AUTO else REGISTRY[format]
            seen = _Seen(file)
            found = report(seen.records(read(file, chosen)))
        except UnknownFormat as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{file}: cannot be read: {error.strerror or error}") from error
        seen.refuse()
        told = {"format": chosen.name, "files": len(seen.files), "records": seen.count, **found}
        self.stdout.write(json.dumps(told, ensure_ascii=False, allow_nan=False))


class _Seen:
    """Lets good records through and remembers the bad: nothing is printed from a file that is half understood."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.files: set[str] = set()
        self.problems: list[str] = []
        self._places: dict[tuple[str, ...], str] = {}

    def records(self, given: Iterator[tuple[str, int, Record | RowProblem]]) -> Iterator[Record]:
        for name, line, record in given:
            self.files.add(name)
            where = f"{name}, line {line}"
            if isinstance(record, RowProblem):
                self.problems.append(f"{where}: {f'field {record.field!r}: ' if record.field else ''}{record.reason}")
                continue
            before = self._places.setdefault(_identity(record), where)
            if before != where:
                self.problems.append(f"{where}: says again what {before} has said")
                continue
            self.count += 1
            yield record

    def refuse(self) -> None:
        """Raises CommandError naming every problem by file and line, the first ones in full."""
        more = len(self.problems) - MAX_TOLD
        told = self.problems[:MAX_TOLD] + ([f"and {more} more problems"] if more > 0 else [])
        if told:
            raise CommandError("\n".join(told))
        if not self.count:
            raise CommandError(f"{self.path}: holds no verdicts")


def _identity(record: Record) -> tuple[str, ...]:
    if isinstance(record, Pairwise):
        return (record.judge, record.collection, record.group, record.pair)
    return (record.judge, record.tree)
