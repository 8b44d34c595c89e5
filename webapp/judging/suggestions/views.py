"""A project's page on which a judge is asked for suggestions."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from trainer.contracts.plurals import with_noun
from webapp.accounts.access import member, require
from webapp.annotation import access as projects
from webapp.annotation import page_context
from webapp.annotation.jobs import runner as work
from webapp.annotation.jobs.queries import jobs
from webapp.annotation.models import Job, Project
from webapp.annotation.work.suggestion_queries import standing
from webapp.annotation.work.suggestions import take_away
from webapp.core.problems import Invalid, Problem
from webapp.core.requests.numbers import whole_number

from .. import queries
from .services import JUDGES, ask_judge

MAX_CHOICES = 200


@member(projects.READER)
@never_cache
@require_http_methods(["GET", "POST"])
def project_suggestions(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """Shows how many tasks have a judge's view and how often people answered as it did. A POST asks, stops or takes away."""
    membership = require(request)
    project = projects.project_read(membership, project_id)
    problems: dict[str, str] = {}
    if request.method == "POST":
        project = projects.project_write(membership, project_id)
        try:
            messages.success(request, _act(request, project))
            return redirect("project_suggestions", project_id)
        except Problem as problem:
            problems = problem.fields or {"": problem.message}
    versions = queries.usable_versions(project.workspace_id, JUDGES.get(project.kind, ()))
    context: dict[str, Any] = page_context.context(membership, project, "suggestions") | {
        "versions": list(versions[:MAX_CHOICES]),
        "asked": JUDGES.get(project.kind, ()),
        "far": standing(project),
        "job": jobs(project).get(Job.Kind.SUGGEST),
        "problems": problems,
        "posted": request.POST,
    }
    return render(request, "judging/suggestions.html", context, status=422 if problems else 200)


def _act(request: HttpRequest, project: Project) -> str:
    """Does what the button says and returns it in words. Raises Problem."""
    membership, action = require(request), request.POST.get("action")
    if action == "stop":
        work.stop(project, Job.Kind.SUGGEST)
        return "The judge is being stopped; its verdicts are kept."
    if action == "remove":
        return f"The suggestions of {with_noun(take_away(membership, project), 'tasks')} were taken away."
    rows = queries.usable_versions(project.workspace_id, JUDGES.get(project.kind, ()))
    chosen = whole_number(request.POST.get("judge", ""))
    version = None if chosen is None else rows.filter(pk=chosen).first()
    if version is None:
        raise Invalid("Choose a judge.", {"judge": "choose a judge of this workspace"})
    typed = request.POST.get("tokens", "").replace(",", "").strip()
    tokens = whole_number(typed, 11)
    if typed and tokens is None:
        raise Invalid("The limit is not a number.", {"tokens": "enter a whole number of tokens, or leave it empty"})
    ask_judge(membership, project, version, tokens)
    return f"{version} is being asked."


urls = [path("projects/<int:project_id>/suggestions", project_suggestions, name="project_suggestions")]
