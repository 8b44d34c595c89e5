"""Audits recorded verdicts from lines of a file; `trainer.metrics.audit` measures."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from trainer.metrics.audit import OVERALL, Audit, AuditCase, audit

from .fields import LineProblem, fields, name, verdict

FIELDS = ("judge", "pair", "group", "label", "given", "swapped")


def parse_case(row: Any) -> AuditCase:
    """Reads a JSON object as a case. `given` and `swapped` may be null or absent: then the verdict is missing."""
    row = fields(row, ", ".join(FIELDS[:-1]) + f" and {FIELDS[-1]}")
    judge, pair, group = name(row, "judge"), name(row, "pair"), name(row, "group", default="")
    label = verdict(row, "label")
    if label is None:
        raise LineProblem("label", 'is missing; expected "A", "B" or "tie"')
    return AuditCase(judge, pair, group, label, verdict(row, "given"), verdict(row, "swapped"))


class JudgedPairs:
    """Remembers on which line each judge judged a pair of a group; 16 bytes stand for the three names."""

    def __init__(self) -> None:
        self._lines: dict[bytes, int] = {}

    def again(self, line: int, case: AuditCase) -> str:
        """The problem of a pair that its judge has judged before in the same group; "" for a new pair."""
        names = "\0".join((case.judge, case.group, case.pair))
        before = self._lines.setdefault(blake2b(names.encode("utf-8", "surrogatepass"), digest_size=16).digest(), line)
        told = f"field 'pair': judge {case.judge!r} judged {case.pair!r} already on line {before}"
        return "" if before == line else told


def repeated(cases: Iterable[tuple[int, AuditCase]]) -> list[tuple[int, str]]:
    """(line, problem) of every pair that its judge had judged before in the same group."""
    seen = JudgedPairs()
    return [(line, problem) for line, case in cases if (problem := seen.again(line, case))]


def report(cases: Iterable[AuditCase]) -> list[dict[str, Any]]:
    """One record per judge and group, and one per judge over all its groups, which `overall` marks."""
    return shown(audit(cases))


def shown(audits: Iterable[tuple[str, str | None, Audit]]) -> list[dict[str, Any]]:
    """The records of `report` for audits that are made already."""
    return [
        {"judge": judge, "group": OVERALL if group is None else group, "overall": group is None, **found.json()}
        for judge, group, found in audits
    ]
