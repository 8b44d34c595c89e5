"""PandaLM: instructions with two responses, three annotators' labels or a judge's verdict (Wang et al., 2023).

A judge's file names a pair by `idx`; the instruction and responses come from testset-v1.json beside it.
"""

from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Beside, Importer
from .convert import Convert, Mapping
from .fields import not_given, one_of, remaining_fields, text_of

STRENGTH = {0: 0, 1: -2, 2: 2}  # 0 tie, 1 the first is better, 2 the second
ANNOTATORS = ("annotator1", "annotator2", "annotator3")
NEEDED = {"instruction", "response1", "response2"}
USED = {"idx", "instruction", "input", "response1", "response2", "cmp_key", "motivation_app", *ANNOTATORS}
TESTSET = "testset-v1.json"
# as the judges' files write them; an unreadable verdict is missing, and never a tie
VERDICTS = {"1": -2, 1: -2, "2": 2, 2: 2, "0": 0, 0: 0, "Tie": 0, "garbage": None}


def knows(row: Row) -> float:
    return 0.97 if row.keys() >= NEEDED or _judge(row) else 0.0


def _judge(row: Row) -> str:
    """The judge whose verdict the row holds: `x` if there are `x_result` and `x_reason`; '' for other rows."""
    names = (name.removesuffix("_result") for name in row if isinstance(name, str) and name.endswith("_result"))
    return next((name for name in names if "idx" in row and f"{name}_reason" in row), "")


def bind(beside: Beside) -> Convert:
    pairs: dict[Any, Row] = {}

    def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
        judge = _judge(row)
        if not judge:
            return pair(row)
        if not pairs:
            pairs.update({given.get("idx"): given for given in beside.rows(TESTSET)} or {None: {}})
        return verdict(row, judge, pairs.get(row["idx"], {}))

    return convert


def verdict(row: Row, judge: str, given: Row) -> dict[str, Any]:
    """The pair with the judge's verdict instead of the annotators' labels."""
    absent = {name: not_given(f"{name} of pair {row['idx']}", TESTSET) for name in NEEDED}
    data = pair({**absent, **given, "idx": row["idx"]})
    strength = one_of(row, f"{judge}_result", VERDICTS)
    reason = str(row.get(f"{judge}_reason") or "").strip()
    preference = {"a": "a", "b": "b", "rater": judge, "reasons": [{"text": reason}] if reason else []}
    undecided = {"verdict": "cannot_assess"}
    data["key"] += f"/{judge}"
    data["preferences"] = [preference | (undecided if strength is None else {"strength": strength})]
    data["reference"] = row.get(f"{judge}_reference")
    data["tags"] = [] if given else ["text missing"]
    data["meta"] |= remaining_fields(row, {"idx", f"{judge}_reason", f"{judge}_reference"})
    return data


def pair(row: Row) -> dict[str, Any]:
    instruction = text_of(row, "instruction")
    if not isinstance(row.get("idx"), int | str):
        raise BadRow("idx", "is missing" if row.get("idx") is None else "must be a number or text")
    origins = str(row.get("cmp_key") or "").split("_", 1)
    given = row.get("input")
    return {
        "key": f"pandalm-{row['idx']}",
        "prompt": [{"role": "user", "content": f"{instruction}\n\n{given}" if given else instruction}],
        "source": "PandaLM",
        "domain": str(row.get("motivation_app") or ""),
        "responses": [
            {
                "id": letter,
                "text": _response(row, f"response{number}"),
                "origin": origins[number - 1] if len(origins) == 2 else "",
            }
            for number, letter in ((1, "a"), (2, "b"))
        ],
        "preferences": [_label(row, rater) for rater in ANNOTATORS if row.get(rater) is not None],
        "meta": remaining_fields(row, USED),
    }


def _response(row: Row, field: str) -> str:
    """The answer; the published file has a few that its writer took for a truth value or a number."""
    value = row.get(field)
    return str(value) if isinstance(value, bool | int | float) else text_of(row, field)


def _label(row: Row, rater: str) -> dict[str, Any]:
    if row[rater] not in STRENGTH:
        raise BadRow(rater, f"must be 0 (tie), 1 or 2, found {row[rater]!r}")
    return {"a": "a", "b": "b", "strength": STRENGTH[row[rater]], "rater": rater}


IMPORTER = Importer(
    name="pandalm",
    label="PandaLM test set",
    help="Instruction, two responses and the labels of three annotators; or a judge's verdicts with reasons, by idx.",
    knows=knows,
    bind=bind,
    aside=lambda row: bool(_judge(row)),
)
