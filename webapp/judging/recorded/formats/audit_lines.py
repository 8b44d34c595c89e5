"""Lines as `manage.py audit` reads them: judge, pair, group, label, given, swapped. The label may be missing."""

from collections.abc import Iterator

from ...lines.fields import LineProblem, name, verdict
from .base import BadRow, RecordedPair, Row, VerdictFormat


def knows(row: Row) -> float:
    return 0.9 if row.keys() >= {"judge", "pair"} and ("given" in row or "swapped" in row) else 0.0


def convert(row: Row) -> Iterator[RecordedPair]:
    """A verdict whose field is absent was never asked for; one that is null is missing."""
    try:
        yield RecordedPair(
            judge=name(row, "judge"),
            pair=name(row, "pair"),
            group=name(row, "group", default=""),
            label=verdict(row, "label"),
            given=verdict(row, "given"),
            swapped=verdict(row, "swapped"),
            orders="both" if "swapped" in row else "given",
        )
    except LineProblem as problem:
        raise BadRow(problem.field, problem.reason) from problem


FORMAT = VerdictFormat(
    name="audit",
    label="Audit lines",
    help="lines with judge, pair, group, label, given and swapped",
    knows=knows,
    bind=lambda beside: convert,
)
