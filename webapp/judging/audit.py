"""Audits of recorded verdicts from lines of a file; what is measured is in `trainer.benchmarks.audit`."""

from collections.abc import Iterable, Sequence
from typing import Any

from trainer.benchmarks.audit import OVERALL, Case, audit

from .lines import LineProblem, fields, name, verdict

FIELDS = ("judge", "pair", "group", "label", "given", "swapped")


def parse_case(row: Any) -> Case:
    """One JSON object as a case. `given` and `swapped` may be null or absent: a verdict that is missing."""
    row = fields(row, ", ".join(FIELDS[:-1]) + f" and {FIELDS[-1]}")
    judge, pair, group = name(row, "judge"), name(row, "pair"), name(row, "group", default="")
    label = verdict(row, "label")
    if label is None:
        raise LineProblem("label", 'is missing; expected "A", "B" or "tie"')
    return Case(judge, pair, group, label, verdict(row, "given"), verdict(row, "swapped"))


def repeated(cases: Sequence[tuple[int, Case]]) -> list[tuple[int, str]]:
    """(line, problem) of every pair that its judge had judged before in the same group."""
    first: dict[tuple[str, str, str], int] = {}
    found = []
    for line, case in cases:
        before = first.setdefault((case.judge, case.group, case.pair), line)
        if before != line:
            found.append((line, f"field 'pair': judge {case.judge!r} judged {case.pair!r} already on line {before}"))
    return found


def report(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """One record per judge and group and one per judge over all its groups, marked by `overall`."""
    return [
        {"judge": judge, "group": OVERALL if group is None else group, "overall": group is None, **found.json()}
        for judge, group, found in audit(cases)
    ]
