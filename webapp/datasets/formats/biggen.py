"""BiGGen-Bench (Kim et al., 2024): instances with one criterion each and a description of every score from 1 to 5."""

from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Importer
from .convert import Mapping
from .fields import criteria, messages, remaining_fields, text_of

USED = {"id", "capability", "task", "system_prompt", "input", "reference_answer", "score_rubric", "responses"}


def knows(row: Row) -> float:
    return 0.98 if {"capability", "task", "input", "score_rubric"} <= row.keys() else 0.0


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    rubric = row.get("score_rubric")
    if not isinstance(rubric, dict) or not rubric.get("criteria"):
        raise BadRow("score_rubric.criteria", "is missing")
    prompt = messages(row.get("input"), "input")
    if row.get("system_prompt"):
        prompt = [{"role": "system", "content": str(row["system_prompt"])}, *prompt]
    levels = {str(score): rubric[name] for score in range(1, 6) if (name := f"score{score}_description") in rubric}
    return {
        "key": text_of(row, "id"),
        "prompt": prompt,
        "source": "BiGGen-Bench",
        "domain": str(row.get("capability") or ""),
        "tags": [str(row["task"])] if row.get("task") else [],
        "reference": row.get("reference_answer"),
        "rubric": {"criteria": criteria([rubric["criteria"]])},
        "meta": remaining_fields(row, USED) | {"levels": {"c1": levels}},
    }


IMPORTER = Importer(
    name="biggen",
    label="BiGGen-Bench rubrics",
    help="Instances with input, reference answer and a score rubric with five described scores.",
    knows=knows,
    convert=convert,
)
