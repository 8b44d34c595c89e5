"""Projects: making, opening, pausing, guidelines, people, invitations."""

from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest
from ninja import Router, Status

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page
from webapp.core.requests.strict_query import OneOf
from webapp.datasets.api.references import find

from .. import access, queries
from .. import schemas as s
from ..agreement import refresh
from ..jobs.queries import jobs
from ..kinds import KINDS, Settings
from ..models import Project
from ..people import queries as persons
from ..work import inbox as own
from . import advice, serializers, services, size_estimate

router = Router(tags=["annotation"])


def _shown(project: Project) -> dict[str, Any]:
    return serializers.project(queries.rows([project])[0])


@router.get("/projects/kinds", response=s.KindList, summary="The kinds of task: what they ask, what an answer is")
def kinds(request: HttpRequest) -> dict[str, Any]:
    access.may_read(require(request))
    items = [
        {
            "name": k.name,
            "title": k.title,
            "text": k.text,
            "needs": list(k.needs),
            "answer": k.answer.model_json_schema(),
        }
        for k in KINDS.values()
    ]
    return {"items": items, "settings": Settings.model_json_schema()}


@router.get("/projects", response=s.ProjectList, summary="The projects of this workspace, newest first")
def list_projects(
    request: HttpRequest,
    cursor: str | None = None,
    limit: Limit = 50,
    state: Annotated[str, OneOf(tuple(Project.State.values))] | None = None,
) -> dict[str, Any]:
    found = queries.projects(access.may_read(require(request)).workspace_id)
    if state is not None:
        found = found.filter(state=state)
    listed = page(found, cursor, limit, "-id")
    return {"items": [serializers.project(row) for row in queries.rows(listed.items)], "next": listed.next}


@router.post("/projects", response={201: s.ProjectOut}, summary="Create a project")
@transaction.atomic  # made and opened, or not made
def create(request: HttpRequest, payload: s.ProjectIn) -> Status[dict[str, Any]]:
    """Freezes the version. A worker makes the tasks: `tasks_made` says when they are there. 422 names every wrong field."""
    membership = access.may_write(require(request))
    project = services.create(
        membership,
        name=payload.name,
        kind=payload.kind,
        dataset=find(membership.workspace_id, payload.dataset),
        overlap=payload.overlap,
        strategy=payload.strategy,
        settings=payload.settings,
        guidelines=payload.guidelines,
    )
    if payload.open:
        services.set_state(membership, project, Project.State.OPEN)
    return Status(201, _shown(project))


@router.post(
    "/projects/size", response=s.SizeOut, summary="The number of tasks that a project would make; nothing is written"
)
def size(request: HttpRequest, payload: s.SizeIn) -> size_estimate.Size:
    membership = access.may_write(require(request))
    return size_estimate.estimate_size(find(membership.workspace_id, payload.dataset), payload.kind, payload.overlap)


@router.get("/projects/mine", response=s.WaitingList, summary="Projects that ask for your own judgement")
def mine(request: HttpRequest) -> dict[str, Any]:
    """For every role: the projects you take part in, those with work first."""
    return {"items": [serializers.waiting(row) for row in own.projects_with_work(require(request))]}


@router.get("/projects/{int:project_id}", response=s.ProjectOut, summary="One project with its progress")
def get_project(request: HttpRequest, project_id: s.ProjectId) -> dict[str, Any]:
    return _shown(access.project_read(require(request), project_id))


@router.patch("/projects/{int:project_id}", response=s.ProjectOut, summary="Change name, overlap or settings")
def change(request: HttpRequest, project_id: s.ProjectId, payload: s.ProjectChange) -> dict[str, Any]:
    membership = require(request)
    project = access.project_write(membership, project_id)
    return _shown(services.update(membership, project, **payload.dict(exclude_none=True)))


@router.post("/projects/{int:project_id}/state", response=s.ProjectOut, summary="Open, pause or close a project")
def set_state(request: HttpRequest, project_id: s.ProjectId, payload: s.StateIn) -> dict[str, Any]:
    """409 if its present state does not allow the new one."""
    membership = require(request)
    project = access.project_write(membership, project_id)
    return _shown(services.set_state(membership, project, payload.state))


@router.get(
    "/projects/{int:project_id}/progress",
    response=s.StatusOut,
    summary="The progress of a project, its speed, and its expected end",
)
def progress(request: HttpRequest, project_id: s.ProjectId) -> dict[str, Any]:
    membership = require(request)
    project = access.project_read(membership, project_id)
    far = queries.progress(project)
    pace = queries.pace(project, far)
    refresh.current_report(project)
    people, remarks = persons.people(project), queries.open_comments(project)
    told = advice.warnings(project, far, people, remarks, access.may_name(membership))
    return {
        "progress": serializers.progress(far),
        "open_now": queries.open_seats(project),
        "per_day": pace.per_day,
        "finish": pace.finish,
        "reason": pace.reason,
        "throughput": queries.throughput(project),
        "warnings": [f"{each.title}: {each.text}" for each in told],
    }


@router.get("/projects/{int:project_id}/jobs", response=s.JobList, summary="Jobs of workers over the whole project")
def list_jobs(request: HttpRequest, project_id: s.ProjectId) -> dict[str, Any]:
    """The last job of each kind, with its progress and its result."""
    return {"items": list(jobs(access.project_read(require(request), project_id)).values())}


@router.get(
    "/projects/{int:project_id}/guidelines",
    response=s.GuidelinesList,
    summary="Versions of the guidelines, newest first",
)
def list_guidelines(request: HttpRequest, project_id: s.ProjectId) -> dict[str, Any]:
    project = access.project_read(require(request), project_id)
    return {"items": [serializers.guidelines(row) for row in queries.guidelines(project)]}


@router.post(
    "/projects/{int:project_id}/guidelines",
    response={201: s.GuidelinesOut},
    summary="Write a new version of the guidelines",
)
def new_guidelines(request: HttpRequest, project_id: s.ProjectId, payload: s.GuidelinesIn) -> Status[dict[str, Any]]:
    """If the same text is sent again, the response has the version with this text."""
    membership = require(request)
    project = access.project_write(membership, project_id)
    return Status(201, serializers.guidelines(services.new_guidelines(membership, project, payload.text, payload.base)))
