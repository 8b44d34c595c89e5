"""Argilla exports: records of version 2 as JSON or flattened for a table, and those of version 1."""

from typing import Any

from webapp.files.records import BadRow, Row

from .annotation_tools import RaterAnswer, example
from .base_importer import Importer
from .convert import Mapping
from .fields import content_key, remaining_fields

NESTED = {"fields", "responses"}
KEPT = {"id", "_server_id", "external_id", "status", "metadata", "vectors"}


def knows(row: Row) -> float:
    if row.keys() >= NESTED and isinstance(row["fields"], dict) and isinstance(row["responses"], dict | list):
        return 0.98
    if any(name.endswith(".responses.users") for name in row):
        return 0.98
    return 0.95 if _first(row) else 0.0


def _first(row: Row) -> dict[str, list[Row]]:
    """The questions of a record of version 1: lists of answers with user and status."""
    return {
        name: value
        for name, value in row.items()
        if isinstance(value, list)
        and value
        and all(isinstance(v, dict) and {"user_id", "value", "status"} <= v.keys() for v in value)
    }


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    if "fields" in row:
        return _nested(row)
    return _flat(row) if any(name.endswith(".responses.users") for name in row) else _of_version_1(row)


def _nested(row: Row) -> dict[str, Any]:
    if not isinstance(row.get("fields"), dict):
        raise BadRow("fields", "must be an object of texts")
    answers = []
    responses = row.get("responses") or {}
    if isinstance(responses, list):  # version 1: one object for each person
        for each in responses:
            values = each.get("values") or {}
            answers += [RaterAnswer(q, _rater(each), v.get("value")) for q, v in values.items() if _submitted(each)]
    else:
        for question, given in responses.items():
            answers += [RaterAnswer(question, _rater(each), each.get("value")) for each in given if _submitted(each)]
    meta = remaining_fields(row, {"fields", "responses", "id", "status", "_server_id"})
    meta = {name: value for name, value in meta.items() if value not in ({}, [])}
    return _example(row, row["fields"], answers, meta)


def _flat(row: Row) -> dict[str, Any]:
    questions = [name.removesuffix(".responses.users") for name in row if name.endswith(".responses.users")]
    answers = []
    for question in questions:
        values = row.get(f"{question}.responses") or []
        raters = row.get(f"{question}.responses.users") or []
        states = row.get(f"{question}.responses.status") or ["submitted"] * len(values)
        if not len(values) == len(raters) == len(states):
            raise BadRow(f"{question}.responses", "must be as many as its users and states")
        given = zip(raters, values, states, strict=True)
        answers += [RaterAnswer(question, str(rater), value) for rater, value, state in given if state == "submitted"]
    own = {name for name in row for q in questions if name == q or name.startswith(f"{q}.")}
    fields = {name: value for name, value in row.items() if name not in own | KEPT and not _is_note(name)}
    meta = {name: row[name] for name in row if (name in own and ".suggestion" in name) or _is_note(name)}
    return _example(row, fields, answers, {name: value for name, value in meta.items() if value is not None})


def _is_note(name: str) -> bool:
    return name.startswith(("metadata.", "vectors."))


def _of_version_1(row: Row) -> dict[str, Any]:
    questions = _first(row)
    answers = [
        RaterAnswer(name, _rater(each), each.get("value"))
        for name, given in questions.items()
        for each in given
        if _submitted(each)
    ]
    notes = {name for name in row if "-suggestion" in name}
    fields = {name: value for name, value in row.items() if name not in questions.keys() | notes | KEPT}
    meta = {name: row[name] for name in (*sorted(notes), "metadata") if row.get(name) not in (None, {}, [], "{}")}
    return _example(row, fields, answers, meta)


def _rater(given: Row) -> str:
    return str(given.get("user_id") or given.get("user") or "")


def _submitted(given: Any) -> bool:
    """Whether the answer was submitted: drafts and discarded answers do not count."""
    return (
        isinstance(given, dict)
        and given.get("status", "submitted") == "submitted"
        and given.get("value", given.get("values")) is not None
    )


def _example(row: Row, fields: Row, answers: list[RaterAnswer], meta: Row) -> dict[str, Any]:
    key = row.get("id") or row.get("external_id") or content_key(fields)
    return example(str(key), "Argilla", fields, answers, meta)


IMPORTER = Importer(
    name="argilla",
    label="Argilla export",
    help="Records with fields and responses; or columns that end in .responses and .responses.users.",
    knows=knows,
    convert=convert,
)
