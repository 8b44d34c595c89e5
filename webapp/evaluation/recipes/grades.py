"""What people said about single criteria of an example's responses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainer.contracts import Criterion, Example, Response
from trainer.judges.combine import majority

MET = {"met": True, "not_met": False}


@dataclass(frozen=True)
class Graded:
    """One criterion of one response with each rater's verdict. `met` None: they are evenly split."""

    example: Example
    response: Response
    criterion: Criterion
    raters: dict[str, bool]

    @property
    def met(self) -> bool | None:
        return majority(list(self.raters.values())).value


def graded(example: Example) -> list[Graded]:
    """In the order of responses and criteria; those that nobody decided are left out.

    Grades are what annotation publishes under `meta.annotation`, and what graded imports keep in `meta.verdicts`. A
    grade of a response or criterion that the example no longer has belongs to nothing and is passed over.
    """
    raters: dict[tuple[str, str], dict[str, bool]] = {}
    for rater, response, criterion, met in [*_annotated(example.meta), *_imported(example.meta)]:
        raters.setdefault((response, criterion), {})[rater] = met
    criteria = example.rubric.criteria if example.rubric else ()
    return [
        Graded(example, response, criterion, raters[response.id, criterion.id])
        for response in example.responses
        for criterion in criteria
        if (response.id, criterion.id) in raters
    ]


def _annotated(meta: dict[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """(rater, response, criterion, met) of every grade; imported data may hold anything under the same names."""
    for project, note in _dict(meta.get("annotation")).items():
        for number, task in enumerate(_list(_dict(note).get("tasks"))):
            task = _dict(task)
            rater = str(task.get("rater") or f"{task.get('source') or number}@project-{project}")
            response = str(_dict(task.get("subject")).get("response"))
            for criterion, verdict in _dict(task.get("grades")).items():
                if str(verdict) in MET:
                    yield rater, response, str(criterion), MET[str(verdict)]


def _imported(meta: dict[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
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
