"""`manage.py rubric_check FILE`: structural problems of a file's rubrics, as one JSON object."""

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from trainer.contracts import Example
from trainer.rubrics.structure import lines, structural_hints
from webapp.core.commands import JsonCommand
from webapp.core.text.jsonlines import as_json_text
from webapp.datasets.formats.importers import REGISTRY, detect, head_of
from webapp.files.records import RowProblem
from webapp.files.source import opened

AUTO = "auto"


class Command(JsonCommand):
    help = "Check the structure of the rubrics in a file, in any format that can be imported, and print where and how often there are hints"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--format", choices=[AUTO, *REGISTRY], default=AUTO)
        parser.add_argument(
            "--show", type=int, default=20, help="list at most this many rubrics with hints, in the order of the file"
        )

    def handle(self, *args: Any, file: Path, format: str, show: int, **options: Any) -> None:
        try:
            head = head_of(file, file.name)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from error
        importer = detect(head) if format == AUTO else REGISTRY[format]
        with opened(file) as (stream, _):
            rows = importer.read(stream, file.name, importer.mapping_of(head))
            report = self._report(rows, show)
        self.stdout.write(as_json_text({"file": file.name, "format": importer.name, **report}))

    def _report(self, rows: Iterator[tuple[int, Example | RowProblem]], show: int) -> dict[str, Any]:
        counts: Counter[str] = Counter()
        codes: Counter[str] = Counter()
        listed: list[dict[str, Any]] = []
        for line, row in rows:
            if isinstance(row, RowProblem):
                counts["unreadable"] += 1
            elif row.rubric is None:
                counts["without"] += 1
            else:
                hints = structural_hints(lines(row.rubric))
                counts["rubrics"] += 1
                counts["criteria"] += len(row.rubric.criteria)
                counts["sound"] += not hints
                codes.update(hint.code for hint in hints)
                if hints and len(listed) < show:
                    listed.append({"line": line, "key": row.key, "hints": [asdict(hint) for hint in hints]})
        kinds = ("rubrics", "criteria", "sound", "without", "unreadable")
        return {**{kind: counts[kind] for kind in kinds}, "hints": dict(codes.most_common()), "listed": listed}
