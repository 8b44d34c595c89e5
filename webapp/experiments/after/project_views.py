"""The page of a project that says what is trained once it is settled."""

from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from trainer.config import RECIPES, ConfigInvalid
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.annotation import access as projects
from webapp.annotation import page_context
from webapp.annotation.models import Project
from webapp.annotation.publishing import services as publish
from webapp.core.pages import confirmation
from webapp.core.problems import Problem
from webapp.core.requests.numbers import whole_number

from .. import access as runs
from ..models import Run
from . import project_steps, queries
from .services import ends_with, invalid

MOST_RUNS = 100


@member(projects.READER)
@never_cache
@require_http_methods(["GET", "POST"])
def project_then(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """The waiting runs, and the form that adds one."""
    membership = require(request)
    project = projects.project_read(membership, project_id)
    if request.method == "GET":
        return render(request, "experiments/project_then.html", _context(membership, project))
    projects.may_write(membership)
    problems = _added(request, membership, project)
    if not problems:
        return redirect("project_then", project_id)
    given = {name: request.POST.get(name, "") for name in ("run", "experiment", "name", "key")}
    context = _context(membership, project) | {"given": given, "problems": problems}
    return render(request, "experiments/project_then.html", context, status=422)


def _context(membership: Membership, project: Project) -> dict[str, Any]:
    missing = project_steps.why_not(project)
    steps = [
        (step, queries.state_without_run(step), project_steps.waiting_reason(step, missing))
        for step in project_steps.steps(project)
    ]
    return page_context.context(membership, project, "then") | {
        "missing": missing,
        "steps": steps,
        "likes": _likes(membership, project) if membership.may(Role.RESEARCHER) else [],
        "what": publish.usual(project).what,
        "given": {"key": uuid4().hex},
        "problems": {},
    }


def _likes(membership: Membership, project: Project) -> list[Run]:
    """Runs that can be repeated: those on this project's dataset first, the newest first."""
    rows = (
        Run.objects.with_names()
        .filter(experiment__workspace_id=membership.workspace_id, recipe__in=list(RECIPES))
        .exclude(state=Run.State.DRAFT)
    )
    newest = list(rows.defer("config").order_by("-pk")[:MOST_RUNS])
    dataset = project.version.dataset_id
    return sorted(newest, key=lambda run: run.dataset_version is None or run.dataset_version.dataset_id != dataset)


def _added(request: HttpRequest, membership: Membership, project: Project) -> dict[str, str]:
    """Adds the run that the form asks for; returns the problems by field."""
    given = request.POST
    number = whole_number(given.get("run", ""), 18)
    if not number:
        return {"run": "Choose a run."}
    try:
        like = runs.run_write(membership, number)
        key = given.get("key", "")[:64] or None
        project_steps.add(membership, project, like, given.get("experiment", ""), given.get("name", ""), key)
    except Http404:
        return {"run": "This run is not there any more."}
    except ConfigInvalid as error:
        return {"run": "; ".join(f"{path}: {why}" for path, why in invalid(error).items())}
    except Problem as error:
        return dict(error.fields) or {"run": error.message}
    return {}


@member(projects.WRITER)
@require_POST
def project_then_cancel(request: HttpRequest, project_id: int, step_id: int) -> HttpResponseBase:
    """Asks first, because the form of a step cannot be brought back. A second press finds it cancelled, and changes nothing."""
    membership = require(request)
    project = projects.project_write(membership, project_id)
    step = project_steps.waiting(project).filter(pk=step_id).first()
    back = reverse("project_then", args=[project_id])
    if step and (
        asked := confirmation.question(
            request, title=f"Cancel “{step}”?", text=ends_with(step), yes="Cancel the step", back=back
        )
    ):
        return asked
    try:
        if project_steps.cancel(membership, project, step_id) is None:
            raise Http404("no such step")
    except Problem as error:
        messages.error(request, error.message)
    return redirect("project_then", project_id)
