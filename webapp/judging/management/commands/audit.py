"""`manage.py audit FILE.jsonl`: accuracy, consistency and position bias of recorded pairwise verdicts, as JSON."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.core.jsonlines import read
from webapp.judging.audit import Case, CaseProblem, audit, parse_case


class Command(BaseCommand):
    help = (
        'Audits judges from lines {"judge", "pair", "group", "label", "given", "swapped"}; null is a missing verdict.'
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        def cases() -> Iterator[Case]:
            for number, row in read(file):
                try:
                    yield parse_case(row)
                except CaseProblem as problem:
                    raise CommandError(f"{file}, line {number}: {problem}") from problem

        try:
            records = audit(cases())
        except CaseProblem as problem:
            raise CommandError(f"{file}: {problem}") from problem
        self.stdout.write(json.dumps({"audits": records}, ensure_ascii=False))
