"""WritingBench (Wu et al., 2025): writing tasks, each with five criteria whose levels are described from 1-2 to 9-10."""

from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Importer
from .convert import Mapping
from .fields import content_key, criteria, messages, objects, remaining_fields


def knows(row: Row) -> float:
    return 0.98 if {"query", "checklist", "domain1"} <= row.keys() else 0.0


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    prompt = messages(row.get("query"), "query")
    checklist = objects(row, "checklist")
    for index, item in enumerate(checklist):
        if not item.get("criteria_description"):
            raise BadRow(f"checklist.{index}.criteria_description", "is missing")
    number = row.get("index")
    domains = [str(row[name]) for name in ("domain1", "domain2") if row.get(name)]
    return {
        "key": f"writingbench-{number}" if number is not None else content_key(prompt),
        "prompt": prompt,
        "source": "WritingBench",
        "domain": domains[0] if domains else "",
        "tags": domains[1:],
        "rubric": {"criteria": _criteria(checklist)},
        "meta": remaining_fields(row, {"index", "domain1", "domain2", "query", "checklist"})
        | {"levels": _levels(checklist)},
    }


def _criteria(checklist: list[Row]) -> list[Row]:
    found = criteria(item["criteria_description"] for item in checklist)
    for criterion, item in zip(found, checklist, strict=True):
        criterion["tags"] = [str(item["name"])] if item.get("name") else []
    return found


def _levels(checklist: list[Row]) -> dict[str, Row]:
    """{criterion: {"1-2": what a text of that score is like, ...}}: what raters on a scale of ten go by."""
    return {f"c{i}": remaining_fields(item, {"name", "criteria_description"}) for i, item in enumerate(checklist, 1)}


IMPORTER = Importer(
    name="writingbench",
    label="WritingBench",
    help="Writing tasks under query with a checklist of criteria and their levels from 1-2 to 9-10.",
    knows=knows,
    convert=convert,
)
