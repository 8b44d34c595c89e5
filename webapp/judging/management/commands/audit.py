"""`manage.py audit FILE.jsonl`: accuracy, consistency and position bias of recorded pairwise verdicts, as JSON."""

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.metrics.audit import AuditCase
from webapp.core.commands import JsonCommand
from webapp.core.text.jsonlines import Lines, as_json_text
from webapp.judging.lines.audits import JudgedPairs, parse_case, report
from webapp.judging.lines.fields import LineProblem


class Command(JsonCommand):
    requires_system_checks = []  # reads a file, nothing else
    help = (
        'Audits judges from lines {"judge", "pair", "group", "label", "given", "swapped"}: label "A", "B" or "tie", '
        "verdicts likewise, or null for a missing one; in swapped orders the verdict as the judge gave it, before un-swapping."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--keep-good", action="store_true", help="list bad lines on stderr, and audit the others")

    def handle(self, *args: Any, file: Path, keep_good: bool = False, **options: Any) -> None:
        lines = Lines(file, parse_case, LineProblem)
        audits = report(_first(lines))
        lines.problems.settle(self.stderr if keep_good else None)
        bad = {"bad_lines": lines.problems.count} if keep_good else {}
        told = {"cases": lines.good, **bad, "audits": audits}
        self.stdout.write(as_json_text(told))


def _first(lines: Lines[AuditCase]) -> Iterator[AuditCase]:
    """The cases; of a pair that its judge has judged before in its group, the first."""
    seen = JudgedPairs()
    for number, case in lines:
        if problem := seen.again(number, case):
            lines.bad(number, problem)
        else:
            yield case
