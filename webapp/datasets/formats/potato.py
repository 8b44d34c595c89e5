"""Potato output: JSON Lines with label_annotations, or CSV and TSV with columns such as `preference:::A`.

An annotator's file names nobody; its folder does. Rows of several annotators of one instance become one example.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from webapp.files.records import Row, RowProblem

from .annotation_tools import RaterAnswer, example, merged
from .base_importer import Beside, Importer
from .convert import Convert, Mapping
from .fields import remaining_fields

MARK = ":::"
KNOWN = {"id", "instance_id", "user", "user_id", "displayed_text", "text", "label_annotations", "span_annotations"}
CHOSEN = {"true", "True", "on", "1", "1.0", True}
TEXT_BOX = "text_box"


def knows(row: Row) -> float:
    if "label_annotations" in row and ("id" in row or "instance_id" in row):
        return 0.98
    return 0.97 if any(isinstance(n, str) and MARK in n for n in row) and {"id", "instance_id"} & row.keys() else 0.0


def merge(rows: Iterator[tuple[int, Row | RowProblem]]) -> Iterator[tuple[int, Row | RowProblem]]:
    yield from merged(
        ((line, row if isinstance(row, RowProblem) else _named(row)) for line, row in rows), "instance_id"
    )


def _named(row: Row) -> Row:
    return row if "instance_id" in row else {**row, "instance_id": row.get("id")}


def bind(beside: Beside) -> Convert:
    folder = PurePosixPath(beside.name).parent.name

    def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
        rows = row["rows"] if "rows" in row else [_named(row)]
        answers = [answer for each in rows for answer in _answers(each, folder)]
        shown = rows[0].get("displayed_text", rows[0].get("text"))
        meta = [
            remaining_fields(each, KNOWN | {n for n in each if MARK in str(n)})
            | ({"spans": each["span_annotations"]} if each.get("span_annotations") else {})
            for each in rows
        ]
        kept = [each for each in meta if each]
        return example(str(rows[0]["instance_id"]), "Potato", _fields(shown), answers, {"rows": kept} if kept else {})

    return convert


def _fields(shown: Any) -> Row:
    if isinstance(shown, dict):
        return {str(name): value for name, value in shown.items()}
    if isinstance(shown, list):
        names = ("text_a", "text_b") if len(shown) == 2 else [f"text {i}" for i in range(1, len(shown) + 1)]
        return dict(zip(names, shown, strict=True))
    return {"text": shown}


def _answers(row: Row, folder: str) -> list[RaterAnswer]:
    rater = str(row.get("user") or row.get("user_id") or folder)
    given = row.get("label_annotations")
    pairs = (
        [(schema, label, value) for schema, labels in given.items() for label, value in _items(labels)]
        if isinstance(given, dict)
        else [(*name.split(MARK, 1), value) for name, value in row.items() if isinstance(name, str) and MARK in name]
    )
    return [
        RaterAnswer(schema, rater, _value(label, value)) for schema, label, value in pairs if value not in (None, "")
    ]


def _items(labels: Any) -> list[tuple[str, Any]]:
    return list(labels.items()) if isinstance(labels, dict) else [("", labels)]


def _value(label: str, value: Any) -> Any:
    """The value of an answer: the label of a chosen option, without regard to its mark or number; the text of a text box."""
    if not label or label == TEXT_BOX or (isinstance(value, str) and len(value.split()) > 1):
        return value
    return label if value in CHOSEN or value == label or str(value).isdigit() else value


IMPORTER = Importer(
    name="potato",
    label="Potato output",
    help="JSON Lines with id, displayed_text and label_annotations; or CSV and TSV with columns question:::label.",
    knows=knows,
    bind=bind,
    merge=merge,
)
