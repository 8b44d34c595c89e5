"""JudgeBench (Tan et al., 2024): what judges decided on pairs with a right and a wrong response, in both orders.

Two layouts: the outputs of its own program, a list `judgments` of one or two; and one line per decision with
`decision_AB` and `decision_BA`. The second decision is kept as it was said, in swapped order.
"""

from collections.abc import Iterator
from typing import Any

from ...lines.fields import LineProblem, name
from ...lines.sides import side
from .base import BadRow, RecordedPair, Row, VerdictFormat

GROUPS = {
    "mmlu-pro": "knowledge",
    "livebench-reasoning": "reasoning",
    "livebench-math": "math",
    "livecodebench": "coding",
}
COMPACT = {"pair_id", "decision_AB", "decision_BA"}


def knows(row: Row) -> float:
    full = "pair_id" in row and isinstance(row.get("judgments"), list)
    return 0.98 if full or row.keys() >= COMPACT else 0.0


def convert(row: Row) -> Iterator[RecordedPair]:
    decisions, model = _full(row) if "judgments" in row else _compact(row)
    given, raw_given = _read(decisions[0])
    swapped, raw_swapped = _read(decisions[1]) if len(decisions) > 1 else (None, "")
    source = str(row.get("source") or "")
    try:
        yield RecordedPair(
            judge=":".join(part for part in (name(row, "judge_name", ""), model) if part) or "judge",
            pair=name(row, "pair_id"),
            label=_label(row),
            given=given,
            swapped=swapped,
            orders="both" if len(decisions) > 1 else "given",
            group=next((group for prefix, group in GROUPS.items() if source.startswith(prefix)), source),
            collection=name(row, "response_model", ""),
            raw_given=raw_given,
            raw_swapped=raw_swapped,
        )
    except LineProblem as problem:
        raise BadRow(problem.field, problem.reason) from problem


def _compact(row: Row) -> tuple[list[Any], str]:
    return [row.get("decision_AB"), row.get("decision_BA")], str(row.get("judge_model") or "")


def _full(row: Row) -> tuple[list[Any], str]:
    """The decisions and the model's name. A judgment that failed is null in the file: no decision."""
    judgments = row["judgments"]
    if not isinstance(judgments, list) or not 1 <= len(judgments) <= 2:
        raise BadRow("judgments", "must be a list of one judgment, or of two in both orders")
    if any(each is not None and not isinstance(each, dict) for each in judgments):
        raise BadRow("judgments", "must hold objects, or null if one failed")
    details = [each.get("judgment") for each in judgments if each]
    models = [each.get("judge_model") for each in details if isinstance(each, dict)]
    model = str(row.get("judge_model") or next((each for each in models if each), ""))
    return [each.get("decision") if each else None for each in judgments], model


def _read(decision: Any) -> tuple[int | None, str]:
    """The side and, of a decision that names none, its text: what cannot be read is missing, not a tie."""
    if decision is None:
        return None, ""
    try:
        return side(decision), ""
    except ValueError:
        return None, str(decision)


def _label(row: Row) -> int | None:
    try:
        return side(row.get("label"))
    except ValueError as error:
        raise BadRow("label", str(error)) from error


FORMAT = VerdictFormat(
    name="judgebench",
    label="JudgeBench outputs",
    help="rows with pair_id, label and judgments, or decision_AB and decision_BA",
    knows=knows,
    bind=lambda beside: convert,
)
