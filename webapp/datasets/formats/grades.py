"""The grades in the `meta` of an example. Without Django, because processes outside of it read this too."""

from collections.abc import Iterator
from typing import Any

Votes = dict[tuple[str, str], list[bool]]  # (response, criterion) -> who said what
MET = {"met": True, "not_met": False}


def graded(meta: dict[str, Any]) -> Votes:
    """The grades by people and judges of each response and criterion: `meta.verdicts`, from imports of graded files, and the grades of
    published annotation, anywhere in `meta.annotation`."""
    votes: Votes = {}
    for each in _dicts(meta.get("verdicts")):
        for verdict in _dicts(each.get("verdicts")):
            if isinstance(verdict.get("met"), bool) and isinstance(each.get("response"), str):
                votes.setdefault((each["response"], str(verdict.get("criterion_id"))), []).append(verdict["met"])
    for note in _dicts(meta.get("annotation")):
        subject, grades = note.get("subject"), note.get("grades")
        if isinstance(subject, dict) and isinstance(grades, dict):
            for criterion, word in grades.items():
                if word in MET:
                    votes.setdefault((str(subject.get("response")), criterion), []).append(MET[word])
    return votes


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a list, or in what a dict holds, at any depth; the outermost first."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _dicts(each)
