"""The actions of pages that hand cases or rubrics to other people. They need the role researcher."""

from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from trainer.config.errors import ConfigInvalid
from webapp.accounts.access import member, require
from webapp.core.problems import Problem
from webapp.core.requests.numbers import whole_number

from .. import access
from . import next_grades, services, tasks

FIELDS = {"overlap": "People per response", "name": "Its name:"}  # as the page calls them


@member(access.WRITER)
@require_POST
def evaluation_tasks(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The examples of the cases that carry every `tag` become a project, which opens."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    try:
        project = tasks.make_tasks(
            membership,
            row,
            request.POST.getlist("tag"),
            name=request.POST.get("name", ""),
            kind=request.POST.get("kind", "pairwise"),
            overlap=whole_number(request.POST.get("overlap", "2"), 3) or 0,
        )
    except Problem as problem:
        reasons = "; ".join(problem.fields.values())
        messages.error(request, f"{problem.message} {reasons}")
        return redirect("evaluation_cases", evaluation_id)
    return redirect("project", project.pk)


@member(access.WRITER)
@require_POST
def evaluation_study(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """People judge the pairs by either rubric: the project in two arms, which opens."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    number = whole_number(request.POST.get("people", "1"), 3) or 0
    try:
        project = services.make(membership, row, name=request.POST.get("name", ""), people=number)
    except Problem as problem:
        messages.error(request, f"{problem.message} {'; '.join(problem.fields.values())}")
        return redirect("evaluation", evaluation_id)
    return redirect("project", project.pk)


@member(access.WRITER)
@require_POST
def evaluation_study_read(request: HttpRequest, evaluation_id: int, project_id: int) -> HttpResponseBase:
    """An evaluation of the answers that a study has by now."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    project = get_object_or_404(services.studies(row), pk=project_id)
    return redirect("evaluation", services.read(membership, project, request.POST.get("key", "")[:64] or None).pk)


@member(access.WRITER)
@require_POST
def evaluation_grade_next(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """Creates a project of the responses that people should grade next, which opens; a second press leads to the same."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    said, problem = request.POST.get("overlap", "1"), ""
    try:
        next_grades.make(membership, row, overlap=whole_number(said, 3) or 0)
    except Problem as error:
        problem = " ".join([error.message, *(f"{FIELDS.get(name, name)} {why}." for name, why in error.fields.items())])
    if request.headers.get("HX-Request"):
        found = {"evaluation": row, "grading": next_grades.grading(row), "may_write": True, "request_key": uuid4().hex}
        return render(request, "evaluation/_grade_next.html", found | {"problem": problem, "overlap": said})
    if problem:
        messages.error(request, problem)
    return redirect(reverse("evaluation", args=[evaluation_id]) + "#grade-next")


@member(access.WRITER)
@require_POST
def evaluation_correct(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The evaluation again, with the grades that were published since."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    try:
        again = next_grades.correct(membership, row, request.POST.get("key", "")[:64] or None)
    except (Problem, ConfigInvalid) as problem:
        messages.error(request, f"The evaluation cannot be corrected again: {problem}")
        return redirect(reverse("evaluation", args=[evaluation_id]) + "#grade-next")
    return redirect("evaluation", again.pk)


urls = [
    path("evaluations/<int:evaluation_id>/grade-next", evaluation_grade_next, name="evaluation_grade_next"),
    path("evaluations/<int:evaluation_id>/correct", evaluation_correct, name="evaluation_correct"),
    path("evaluations/<int:evaluation_id>/tasks", evaluation_tasks, name="evaluation_tasks"),
    path("evaluations/<int:evaluation_id>/study", evaluation_study, name="evaluation_study"),
    path(
        "evaluations/<int:evaluation_id>/study/<int:project_id>/read",
        evaluation_study_read,
        name="evaluation_study_read",
    ),
]
