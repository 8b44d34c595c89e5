"""Suggestions of judges for a project's tasks, over the API."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from webapp.accounts.access import require
from webapp.annotation import access as projects
from webapp.annotation.jobs.queries import jobs
from webapp.annotation.models import Job, Project
from webapp.annotation.work.suggestion_queries import standing
from webapp.annotation.work.suggestions import take_away

from .. import access
from ..parameters import Id
from . import schemas as s
from . import services

router = Router()


@router.get(
    "/projects/{int:project_id}/suggestions", response=s.SuggestionsOut, summary="Suggestions of judges for its tasks"
)
def suggestions(request: HttpRequest, project_id: Id) -> dict[str, Any]:
    """The number of tasks with a judge's view, its source, and how often people gave the same answer, separately for each way it was shown."""
    return _suggestions(projects.project_read(require(request), project_id))


def _suggestions(project: Project) -> dict[str, Any]:
    far = standing(project)
    job = jobs(project).get(Job.Kind.SUGGEST)
    return {"tasks": far.tasks, "suggested": far.with_one, "by": far.by, "agreement": dict(far.agreement), "job": job}


@router.post(
    "/projects/{int:project_id}/suggestions", response={202: s.SuggestionsOut}, summary="Ask a judge about its tasks"
)
def suggest(request: HttpRequest, project_id: Id, payload: s.SuggestIn) -> Status[dict[str, Any]]:
    """A job asks the judge about every task; `GET` shows the progress. `settings.suggestions` says when people see it. 409 while a judge is
    being asked."""
    membership = require(request)
    project = projects.project_write(membership, project_id)
    version = access.version_read(membership, payload.judge, payload.number)
    services.ask_judge(membership, project, version, payload.tokens)
    return Status(202, _suggestions(project))


@router.delete(
    "/projects/{int:project_id}/suggestions",
    response=s.RemovedOut,
    summary="Remove a judge's suggestions",
)
def remove_suggestions(request: HttpRequest, project_id: Id) -> dict[str, Any]:
    """Records of answers stay. While the judge is being asked: 409, and it is stopped; ask again once it has ended."""
    membership = require(request)
    project = projects.project_write(membership, project_id)
    return {"removed": take_away(membership, project)}
