"""PandaLM: instructions with two responses, three annotators' labels or a judge's verdict (Wang et al., 2023)."""

from typing import Any

from .base import BadRow, Importer, Mapping, Row
from .shapes import rest, text_of

STRENGTH = {0: 0, 1: -2, 2: 2}  # 0 tie, 1 the first is better, 2 the second
ANNOTATORS = ("annotator1", "annotator2", "annotator3")
NEEDED = {"instruction", "response1", "response2"}
USED = {"idx", "instruction", "input", "response1", "response2", "cmp_key", "motivation_app", *ANNOTATORS}


def knows(row: Row) -> float:
    return 0.97 if row.keys() >= NEEDED else 0.0


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
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
        "meta": rest(row, USED),
    }


def _response(row: Row, field: str) -> str:
    """The answer; the published file holds a few that its writer took for a truth value or a number."""
    value = row.get(field)
    return str(value) if isinstance(value, bool | int | float) else text_of(row, field)


def _label(row: Row, rater: str) -> dict[str, Any]:
    if row[rater] not in STRENGTH:
        raise BadRow(rater, f"must be 0 (tie), 1 or 2, found {row[rater]!r}")
    return {"a": "a", "b": "b", "strength": STRENGTH[row[rater]], "rater": rater}


IMPORTER = Importer(
    name="pandalm",
    label="PandaLM test set",
    help="Instruction, two responses and the labels of three annotators.",
    knows=knows,
    convert=convert,
)
