"""The grades that people gave to single criteria of an example's responses, read from `meta`."""

from collections.abc import Iterator, Mapping
from typing import Any

_MET = {"met": True, "not_met": False}


def human_grades(meta: Mapping[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """(rater, response, criterion, met) of every grade. Annotation publishes grades under `meta.annotation`; imports keep them in
    `meta.verdicts`. Imported data may hold anything under these names, so other shapes are passed over."""
    yield from _annotated(meta)
    yield from _imported(meta)


def _annotated(meta: Mapping[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    for project, note in _dict(meta.get("annotation")).items():
        for number, task in enumerate(_list(_dict(note).get("tasks"))):
            task = _dict(task)
            rater = str(task.get("rater") or f"{task.get('source') or number}@project-{project}")
            response = str(_dict(task.get("subject")).get("response"))
            for criterion, verdict in _dict(task.get("grades")).items():
                if str(verdict) in _MET:
                    yield rater, response, str(criterion), _MET[str(verdict)]


def _imported(meta: Mapping[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    for number, given in enumerate(_list(meta.get("verdicts"))):
        given = _dict(given)
        rater = str(given.get("rater") or f"rater {number + 1}")
        for verdict in map(_dict, _list(given.get("verdicts"))):
            if verdict.get("source") == "human" and isinstance(verdict.get("met"), bool):
                yield rater, str(given.get("response")), str(verdict.get("criterion_id")), verdict["met"]


def _dict(value: object) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
