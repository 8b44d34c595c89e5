"""PandaLM (Wang et al., 2023): verdicts of judges on its test set, in the given order only.

A judge's file names a pair by `idx`; what three people said stands in testset-v1.json beside it. The label is the
majority of the three; there is none if all three differ. Without that file no pair has a label.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ...lines.fields import LineProblem, name
from .base import BadRow, Beside, RecordedPair, Row, VerdictFormat

TESTSET = "testset-v1.json"
ANNOTATORS = ("annotator1", "annotator2", "annotator3")
SIDES = {"0": 0, "1": -1, "2": 1, "tie": 0}  # any other text in a judge's file is not a verdict
SUFFIX = "_result"


def knows(row: Row) -> float:
    return 0.95 if "idx" in row and _judges(row) else 0.0


def _judges(row: Row) -> list[str]:
    return [column.removesuffix(SUFFIX) for column in row if column.endswith(SUFFIX) and column != SUFFIX]


def bind(beside: Beside) -> Callable[[Row], Iterator[RecordedPair]]:
    people: dict[str, Row] = {}

    def convert(row: Row) -> Iterator[RecordedPair]:
        if not people:
            people.update({str(each.get("idx")): each for each in beside.rows(TESTSET)} or {"": {}})
        try:
            pair = name(row, "idx")
        except LineProblem as problem:
            raise BadRow(problem.field, problem.reason) from problem
        judges = _judges(row)
        if not judges:
            raise BadRow("", "has no column that ends in _result")
        for judge in judges:
            yield _verdict(row, judge, pair, people.get(pair, {}))

    return convert


def _verdict(row: Row, judge: str, pair: str, people: Row) -> RecordedPair:
    said = row[f"{judge}{SUFFIX}"]
    humans = {who: side for who in ANNOTATORS if (side := _side(people.get(who))) is not None}
    given = _side(said)
    return RecordedPair(
        judge=judge,
        pair=f"pandalm-{pair}",  # as the importer of the data set calls it
        label=_majority(list(humans.values())),
        given=given,
        orders="given",
        humans=humans,
        raw_given="" if given is not None or said is None else str(said),
        reason=str(row.get(f"{judge}_reason") or "").strip(),
    )


def _side(value: Any) -> int | None:
    return None if isinstance(value, bool) else SIDES.get(str(value).strip().lower())


def _majority(sides: list[int]) -> int | None:
    votes = Counter(sides).most_common()
    return votes[0][0] if votes and (len(votes) == 1 or votes[0][1] > votes[1][1]) else None


FORMAT = VerdictFormat(
    name="pandalm",
    label="PandaLM judges",
    help="rows with idx and a column NAME_result; labels from testset-v1.json in the same folder",
    knows=knows,
    bind=bind,
)
