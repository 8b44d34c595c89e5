"""HealthBench: conversations with weighted criteria (Arora et al., 2025)."""

from typing import Any

from webapp.files.records import BadRow, Row

from ..base_importer import Importer
from ..convert import Mapping
from ..fields import content_key, messages, remaining_fields

USED = {"prompt", "prompt_id", "rubrics", "example_tags", "ideal_completions_data"}


def knows(row: Row) -> float:
    return 0.98 if {"prompt", "rubrics"} <= row.keys() else 0.0


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    prompt = messages(row.get("prompt"), "prompt")
    tags = [tag for tag in row.get("example_tags") or [] if isinstance(tag, str)]
    data: dict[str, Any] = {
        "key": str(row.get("prompt_id") or content_key(prompt)),
        "prompt": prompt,
        "source": "HealthBench",
        "domain": next((tag.removeprefix("theme:") for tag in tags if tag.startswith("theme:")), ""),
        "tags": tags,
        "rubric": {"criteria": _criteria(row.get("rubrics"))},
        "meta": remaining_fields(row, USED),
    }
    ideal = row.get("ideal_completions_data")
    if isinstance(ideal, dict):
        data["reference"] = ideal.get("ideal_completion")
        others = [text for text in ideal.get("ideal_completions_ref_completions") or [] if isinstance(text, str)]
        data["responses"] = [
            {"id": f"r{i}", "text": text, "origin": "reference model"} for i, text in enumerate(others, 1)
        ]
        if extra := remaining_fields(ideal, {"ideal_completion", "ideal_completions_ref_completions"}):
            data["meta"]["ideal_completions_data"] = extra
    return data


def _criteria(rubrics: Any) -> list[dict[str, Any]]:
    if not isinstance(rubrics, list) or not rubrics:
        raise BadRow("rubrics", "must be a list of criteria")
    return [_criterion(item, index) for index, item in enumerate(rubrics)]


def _criterion(item: Any, index: int) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise BadRow(f"rubrics.{index}", "must be a criterion with criterion and points")
    for field in ("criterion", "points"):
        if item.get(field) is None:
            raise BadRow(f"rubrics.{index}.{field}", "is missing")
    if not isinstance(item["points"], int | float) or isinstance(item["points"], bool):
        raise BadRow(f"rubrics.{index}.points", "must be a number")
    return {
        "id": f"c{index + 1}",
        "text": item["criterion"],
        "points": item["points"],
        "importance": "pitfall" if item["points"] < 0 else "important",
        "tags": item.get("tags") or [],
    }


IMPORTER = Importer(
    name="healthbench",
    label="HealthBench rubrics",
    help="Conversations under prompt with criteria and points under rubrics.",
    knows=knows,
    convert=convert,
)
