"""Label Studio exports: JSON, a task with its annotations each, or JSON_MIN and CSV, a row for each annotation."""

from collections.abc import Iterator
from typing import Any

from webapp.files.records import BadRow, Row, RowProblem

from .annotation_tools import RaterAnswer, example, merged
from .base_importer import Importer
from .convert import Mapping
from .fields import remaining_fields

FULL, FLAT = {"data", "annotations"}, {"annotator", "annotation_id", "id"}
STAMPS = {"annotator", "annotation_id", "id", "created_at", "updated_at", "lead_time"}


def knows(row: Row) -> float:
    if row.keys() >= FULL and isinstance(row["data"], dict) and isinstance(row["annotations"], list):
        return 0.98
    return 0.97 if row.keys() >= FLAT else 0.0


def merge(rows: Iterator[tuple[int, Row | RowProblem]]) -> Iterator[tuple[int, Row | RowProblem]]:
    """Tasks as they are; rows of single annotations by their task."""
    for line, row in rows:
        if isinstance(row, RowProblem) or row.keys() >= FULL:
            yield line, row
            continue
        yield from merged(_again(line, row, rows), "id")


def _again(line: int, row: Row, rows: Iterator[tuple[int, Row | RowProblem]]) -> Iterator[tuple[int, Row | RowProblem]]:
    yield line, row
    yield from rows


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    return _flat(row["rows"]) if "rows" in row else _task(row)


def _task(row: Row) -> dict[str, Any]:
    if not isinstance(row.get("data"), dict):
        raise BadRow("data", "must be the task's data")
    if not isinstance(row.get("annotations"), list):
        raise BadRow("annotations", "must be a list")
    answers: list[RaterAnswer] = []
    skipped: list[str] = []
    for index, each in enumerate(row["annotations"]):
        if not isinstance(each, dict):
            raise BadRow(f"annotations.{index}", "must be an annotation")
        rater = _rater(each.get("completed_by"))
        if each.get("was_cancelled"):
            skipped.append(rater)
            continue
        answers += [answer for result in each.get("result") or [] for answer in _answers(result, rater)]
    meta = remaining_fields(row, {"id", "data", "annotations"}) | ({"skipped_by": skipped} if skipped else {})
    meta = {name: value for name, value in meta.items() if value not in ([], {})}
    return example(str(row.get("id", "")), "Label Studio", row["data"], answers, meta)


def _rater(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    return "" if value is None else str(value)


def _answers(result: Any, rater: str) -> list[RaterAnswer]:
    """The answers of one control; spans and the like stay as the tool wrote them."""
    if not isinstance(result, dict) or not isinstance(result.get("value"), dict):
        return []
    question, value = str(result.get("from_name") or ""), result["value"]
    for name in ("choices", "text", "taxonomy"):
        if isinstance(value.get(name), list) and "start" not in value:
            return [RaterAnswer(question, rater, each) for each in value[name]]
    for name in ("selected", "rating", "number", "text", "ranker"):
        if name in value and "start" not in value:
            return [RaterAnswer(question, rater, value[name])]
    return [RaterAnswer(question, rater, value)]


def _flat(rows: list[Row]) -> dict[str, Any]:
    """Columns that are equal in all rows belong to the task, the others are answers; in a single row, the short ones are answers."""
    names = dict.fromkeys(name for row in rows for name in row if name not in STAMPS)
    answers, fields = [], {}
    for name in names:
        values = [row.get(name) for row in rows]
        if (
            len(rows) > 1
            and all(value == values[0] for value in values)
            and _is_field(values[0])
            or len(rows) == 1
            and _is_field(values[0])
        ):
            fields[name] = values[0]
        else:
            raters = [_rater(row["annotator"]) for row in rows]
            answers += [
                RaterAnswer(name, rater, _simple(v)) for rater, v in zip(raters, values, strict=True) if v is not None
            ]
    return example(str(rows[0]["id"]), "Label Studio", fields, answers, {})


def _is_field(value: Any) -> bool:
    """Whether a value belongs to the task: a task's texts are long or of several words; a choice is short. If both are short, the export
    does not tell."""
    return isinstance(value, str) and len(value.split()) > 2


def _simple(value: Any) -> Any:
    """Unwraps `{"choices": [...]}` and single-valued lists, this export's form of several answers."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    return value[0] if isinstance(value, list) and len(value) == 1 else value


IMPORTER = Importer(
    name="label_studio",
    label="Label Studio export",
    help="JSON with data and annotations; or JSON_MIN and CSV with annotator and annotation_id.",
    knows=knows,
    convert=convert,
    merge=merge,
)
