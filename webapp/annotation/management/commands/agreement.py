"""`manage.py agreement FILE.jsonl --level ordinal`: every agreement coefficient of a file of ratings, as JSON."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, ClassVar, get_args

from django.core.management.base import BaseCommand, CommandError

from trainer.benchmarks.agreement import Level, RatingProblem, parse_rating, report, tabulate
from webapp.core.jsonlines import parsed


class Command(BaseCommand):
    requires_system_checks: ClassVar[list[str]] = []  # reads a file, nothing else
    help = 'Agreement of ratings, one {"unit", "rater", "value"} a line; a null value is a missing rating.'

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--level", choices=get_args(Level), default="nominal")

    def handle(self, *args: Any, file: Path, level: Level, **options: Any) -> None:
        lines = parsed(file, lambda row: parse_rating(row, level), RatingProblem)
        ratings = [rating for _, rating in lines if rating is not None]
        try:
            table = tabulate(ratings)
        except RatingProblem as problem:
            raise CommandError(f"{file}: {problem}") from problem
        self.stdout.write(
            json.dumps({**report(table, level), "missing": len(lines) - len(ratings)}, ensure_ascii=False)
        )
