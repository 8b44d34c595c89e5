"""`manage.py rationale FILE.jsonl`: rationale consistency of recorded judgements, as JSON."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from trainer.metrics.rationale import consistency
from webapp.core.commands import JsonCommand
from webapp.core.text.jsonlines import Lines, as_json_text
from webapp.judging.lines.fields import LineProblem
from webapp.judging.lines.rationales import parse_sample


class Command(JsonCommand):
    requires_system_checks = []  # reads a file, nothing else
    help = (
        'RC, AP, hybrid and accuracy from lines {"id", "matrix", "human", "label", "verdict"}: matrix is human x model '
        "scores in [0, 1], human the number of human reasons."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--keep-good", action="store_true", help="list bad lines on stderr, and use the others")

    def handle(self, *args: Any, file: Path, keep_good: bool = False, **options: Any) -> None:
        lines = Lines(file, parse_sample, LineProblem)
        found = consistency(sample for _, sample in lines)
        lines.problems.settle(self.stderr if keep_good else None)
        bad = {"bad_lines": lines.problems.count} if keep_good else {}
        self.stdout.write(as_json_text(bad | found.json()))
