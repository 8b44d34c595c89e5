"""Tasks of a project as managers and reviewers see them, and which of them are gold."""

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Router

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page

from .. import access
from .. import schemas as s
from ..agreement.pseudonyms import Faces, faces
from ..models import Task
from . import gold_services as marking
from . import serializers
from . import task_queries as queries
from . import task_services as services

router = Router(tags=["annotation"])


@router.get("/projects/{int:project_id}/tasks", response=s.TaskList, summary="The tasks of a project")
def tasks(
    request: HttpRequest,
    project_id: s.ProjectId,
    state: str = "",
    q: str = "",
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """`state`: open, in_work, complete, gold, skipped or flagged; `q`: words of the key or the prompt."""
    project = access.project_read(require(request), project_id)
    found = page(queries.tasks(project, state, q.replace("\0", "").strip()[:200]), cursor, limit, "id")
    return {"items": [serializers.task(row) for row in found.items], "next": found.next}


@router.get(
    "/projects/{int:project_id}/tasks/{int:task_id}", response=s.TaskDetail, summary="One task with its answers"
)
def task(request: HttpRequest, project_id: s.ProjectId, task_id: s.ProjectId, names: bool = False) -> dict[str, Any]:
    """`names`: show names beside the pseudonyms; not for reviewers."""
    row = _task(request, project_id, task_id)
    return _detail(row, faces(row.project, named=access.named(require(request), names)))


def _task(request: HttpRequest, project_id: int, task_id: int) -> Task:
    row = access.task_read(require(request), task_id)
    if row.project_id != project_id:
        raise Http404("no such task")
    return row


def _detail(row: Task, people: Faces) -> dict[str, Any]:
    listed = queries.tasks(row.project).get(pk=row.pk)  # with the counts of the list
    seats = [serializers.seat(each, people) for each in queries.seats(row)]
    comments = [serializers.comment(each, people) for each in queries.comments(row)]
    return {**serializers.task(listed), "seats": seats, "comments": comments}


@router.put(
    "/projects/{int:project_id}/tasks/{int:task_id}/gold", response=s.TaskDetail, summary="Make a task a gold task"
)
def set_gold(request: HttpRequest, project_id: s.ProjectId, task_id: s.ProjectId, payload: s.GoldIn) -> dict[str, Any]:
    """Existing answers are compared with it. 409 for kinds whose answers cannot be checked."""
    membership = access.may_write(require(request))
    row = services.set_gold(membership, _task(request, project_id, task_id), payload.content)
    return _detail(row, faces(row.project))


@router.post("/projects/{int:project_id}/gold", response=s.MarkOut, summary="Create gold tasks from known answers")
def mark(request: HttpRequest, project_id: s.ProjectId, payload: s.MarkIn) -> marking.MarkedGold:
    """`labels`: preferences of the data that agree; `answers`: answers of complete tasks that are alike."""
    membership = require(request)
    project = access.project_write(membership, project_id)
    return marking.mark(membership, project, payload.source, payload.most, payload.least)
