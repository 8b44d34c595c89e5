"""RubricBench (Zhang et al., 2026): pairs with a label and a rubric written by experts from the instruction alone."""

import json
from typing import Any

from webapp.files.records import BadRow, Row

from ..base_importer import Importer
from ..convert import Mapping
from ..fields import content_key, criteria, messages, one_of, remaining_fields, text_of

NEEDED = {"instruction", "response_a", "response_b", "label"}
USED = {"case_id", "id", "instruction", "response_a", "response_b", "rubrics", "rubric", "source", "domain"}
# The number is the place of the better response, counted from 0, and stays in `meta.label` as it was written. We have not
# seen the published file; three projects that read it and publish their code agree on this, and a judge with the human
# rubrics that one of them measured agrees with 35 of 40 labels if they are read so. A file with a 2 counts from 1, so
# this would read each of its ones as the wrong side.
LABELS = {0: -2, 1: 2, "0": -2, "1": 2, "a": -2, "b": 2, "response_a": -2, "response_b": 2, "tie": 0}

# the published file says where a pair was found; the paper and its program report these five
DOMAINS = {
    **dict.fromkeys(("general", "focus", "human-preference", "factuality", "helpful"), "Chat"),
    **dict.fromkeys(("precise if", "ifeval"), "IF"),
    **dict.fromkeys(("stem", "math", "mmlu-pro", "gpqa"), "STEM"),
    **dict.fromkeys(("mbpp", "code"), "Coding"),
    **dict.fromkeys(("safety", "harmlessness"), "Safety"),
}


def knows(row: Row) -> float:
    return 0.97 if row.keys() >= NEEDED and ("rubrics" in row or "rubric" in row) else 0.0


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    prompt = messages(row.get("instruction"), "instruction")
    answers = [text_of(row, "response_a"), text_of(row, "response_b")]
    label = row.get("label")
    if label in (2, "2"):
        raise BadRow(
            "label", "is 2, and labels are read as counted from 0: subtract 1 from all of them, also from the ones"
        )
    strength = one_of({"label": label.strip().lower() if isinstance(label, str) else label}, "label", LABELS)
    field = "rubrics" if "rubrics" in row else "rubric"
    found = str(row.get("domain") or "").strip()
    domain = DOMAINS.get(found.lower(), found)
    return {
        "key": str(row.get("case_id") or row.get("id") or content_key(prompt, answers)),
        "prompt": prompt,
        "source": "RubricBench",
        "domain": domain,
        "tags": [str(row["source"])] if row.get("source") else [],
        "rubric": {"criteria": criteria(items(row.get(field), field))},
        "responses": [{"id": id, "text": text} for id, text in zip("ab", answers, strict=True)],
        "preferences": [{"a": "a", "b": "b", "strength": strength, "rater": "gold"}],
        "meta": remaining_fields(row, USED) | ({"subdomain": found} if domain != found else {}),
    }


def items(value: Any, field: str) -> list[str]:
    """The rubric's items: a list, a list as JSON in text, or text with one item a line."""
    if isinstance(value, str):
        value = _unpacked(value)
    if not isinstance(value, list) or not value:
        raise BadRow(field, "is missing" if value is None else "must be a list of criteria, or text with one a line")
    return [_text(item, f"{field}.{index}") for index, item in enumerate(value)]


def _unpacked(text: str) -> Any:
    if text.lstrip()[:1] == "[":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass  # a text that happens to start with a bracket
    lines = (line.strip().lstrip("-*•").lstrip("0123456789").lstrip(".)").strip() for line in text.splitlines())
    return [line for line in lines if line]


def _text(item: Any, field: str) -> str:
    if isinstance(item, dict):
        item = next((item[name] for name in ("criterion", "text", "description", "rubric") if item.get(name)), None)
    if not isinstance(item, str) or not item.strip():
        raise BadRow(field, "must be the text of a criterion")
    return item.strip()


IMPORTER = Importer(
    name="rubricbench",
    label="RubricBench pairs with rubric",
    help="Instruction, response_a, response_b, label and rubrics.",
    knows=knows,
    convert=convert,
)
