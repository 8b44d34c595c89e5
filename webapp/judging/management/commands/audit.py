"""`manage.py audit FILE.jsonl`: accuracy, consistency and position bias of recorded pairwise verdicts, as JSON."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, ClassVar

from django.core.management.base import BaseCommand

from webapp.core.jsonlines import parsed, refuse
from webapp.judging.audit import parse_case, repeated, report
from webapp.judging.lines import LineProblem


class Command(BaseCommand):
    requires_system_checks: ClassVar[list[str]] = []  # reads a file, nothing else
    help = (
        'Audits judges from lines {"judge", "pair", "group", "label", "given", "swapped"}: label "A", "B" or "tie", '
        "verdicts the same or null where one is missing; swapped as it was said, before un-swapping."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        lines = parsed(file, parse_case, LineProblem)
        refuse(file, repeated(lines))
        audits = report(case for _, case in lines)
        self.stdout.write(json.dumps({"cases": len(lines), "audits": audits}, ensure_ascii=False, allow_nan=False))
