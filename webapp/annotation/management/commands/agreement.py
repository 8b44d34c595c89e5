"""`manage.py agreement FILE.jsonl --level ordinal`: every agreement coefficient of a file of ratings, as JSON."""

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from trainer.metrics.agreement import Level, RatingProblem, UnitRating, parse_rating, report, tabulate
from webapp.core.commands import JsonCommand
from webapp.core.text.jsonlines import Lines, as_json_text


class Command(JsonCommand):
    requires_system_checks = []  # reads a file, nothing else
    help = 'Agreement of ratings, one {"unit", "rater", "value"} a line; a null value is a missing rating.'

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--level", choices=get_args(Level), default="nominal")

    def handle(self, *args: Any, file: Path, level: Level, **options: Any) -> None:
        lines = Lines(file, lambda row: (parse_rating(row, level),), RatingProblem)
        ratings = list(_once(lines))
        lines.problems.settle()
        told = {**report(tabulate(ratings), level), "missing": lines.good - len(ratings)}
        self.stdout.write(as_json_text(told))


def _once(lines: Lines[tuple[UnitRating | None]]) -> Iterator[UnitRating]:
    """The ratings that are not missing. A second rating of a unit by the same rater is a problem of its line."""
    seen: dict[tuple[str, str], int] = {}
    for number, (rating,) in lines:
        if rating is None:
            continue
        before = seen.setdefault((rating.unit, rating.rater), number)
        if before == number:
            yield rating
        else:
            lines.bad(number, f"field 'rater': {rating.rater!r} rated unit {rating.unit!r} already on line {before}")
