"""Tasks for people from cases and rubrics, over the API. Reading needs the role reviewer, asking researcher."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page

from .. import access
from .. import schemas as s
from ..models import Evaluation
from ..parameters import EvaluationId
from . import next_grades, serializers, services, tasks

router = Router()


@router.post("/evaluations/{int:evaluation_id}/tasks", response={201: s.TasksOut}, summary="Ask people about cases")
def make_tasks(request: HttpRequest, evaluation_id: EvaluationId, payload: s.TasksIn) -> Status[dict[str, Any]]:
    """The examples behind the cases with all of `tags` become a dataset and an open project on it."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    project = tasks.make_tasks(
        membership, row, payload.tags, name=payload.name, kind=payload.kind, overlap=payload.overlap
    )
    return Status(201, {"project": project.pk, "dataset": project.version.dataset_id})


@router.get(
    "/evaluations/{int:evaluation_id}/grade-next",
    response=s.GradeNextOut,
    summary="Responses that people should grade next to correct the judge's score",
)
def grade_next_state(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    """409 `not_corrected` if the evaluation has no score that people correct."""
    return _grading(access.evaluation_read(require(request), evaluation_id))


@router.post(
    "/evaluations/{int:evaluation_id}/grade-next",
    response={200: s.GradeNextOut, 201: s.GradeNextOut},
    summary="Ask people to grade the responses that narrow the corrected score's interval",
)
def grade_next(request: HttpRequest, evaluation_id: EvaluationId, payload: s.GradeNextIn) -> Status[dict[str, Any]]:
    """The responses `to grade next` become a dataset and an open project on it, once for each evaluation: 201 if it is made now, 200 if it
    was there. A worker makes the tasks. Run the evaluation again with the dataset under `graded` once the answers are published."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    _, new = next_grades.make(membership, row, name=payload.name, overlap=payload.overlap)
    return Status(201 if new else 200, _grading(row))


def _grading(row: Evaluation) -> dict[str, Any]:
    found = next_grades.grading(row)
    if found is None:
        raise next_grades.not_corrected()
    return serializers.grading(found)


@router.get(
    "/evaluations/{int:evaluation_id}/studies",
    response=s.StudyList,
    summary="Studies made from a RubricBench evaluation",
)
def study_list(
    request: HttpRequest, evaluation_id: EvaluationId, cursor: str | None = None, limit: Limit = 50
) -> dict[str, Any]:
    found = page(services.studies(access.evaluation_read(require(request), evaluation_id)), cursor, limit)
    return {"items": [serializers.study(project) for project in found.items], "next": found.next}


@router.post(
    "/evaluations/{int:evaluation_id}/studies",
    response={201: s.TasksOut},
    summary="Ask people to judge by either rubric",
)
def make_study(request: HttpRequest, evaluation_id: EvaluationId, payload: s.StudyIn) -> Status[dict[str, Any]]:
    """An open project in two arms on the pairs that the model wrote a rubric for; nobody sees a pair in both. Its answers
    are read by an evaluation of recipe `study` on the same dataset."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    project = services.make(membership, row, name=payload.name, people=payload.people, tags=payload.tags)
    return Status(201, {"project": project.pk, "dataset": project.version.dataset_id})
