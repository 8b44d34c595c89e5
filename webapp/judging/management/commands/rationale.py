"""`manage.py rationale FILE.jsonl`: rationale consistency of recorded judgements, as JSON."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.core.jsonlines import read
from webapp.judging.rationales import Sample, SampleProblem, parse_sample, summarise


class Command(BaseCommand):
    help = 'RC, AP, hybrid and accuracy from lines {"id", "matrix", "human", "label", "verdict"}.'

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        def samples() -> Iterator[Sample]:
            for number, row in read(file):
                try:
                    yield parse_sample(row)
                except SampleProblem as problem:
                    raise CommandError(f"{file}, line {number}: {problem}") from problem

        self.stdout.write(json.dumps(summarise(samples()), ensure_ascii=False))
