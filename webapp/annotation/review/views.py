"""The reviewer's pages: agreement and consolidation."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts.access import member, require
from webapp.core.problems import Conflict
from webapp.core.requests.numbers import whole_number

from .. import access, page_context
from ..agreement import coefficients, matching, refresh
from ..agreement.confusion_matrices import grid, matrix
from ..agreement.fields import cell, tasks_behind
from ..agreement.pseudonyms import Faces, comment, faces
from ..jobs.queries import jobs
from . import queries as review
from . import services, task_page

CELL_PAGE = 50
REMARKS = 20  # open ones on the list; the others follow when these are dealt with


@member(access.READER)
@never_cache
@require_GET
def project_agreement(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """Coefficients per field; for the chosen field per domain, criterion and pair; for the chosen pair every cell."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    report = refresh.current_report(project)
    matching.ask(project)
    people = page_context.seen_as(request, membership, project)
    body = report.body or {}
    field = _chosen(body.get("fields", []), request.GET.get("field", ""))
    context = page_context.context(membership, project, "agreement") | {
        "report": report,
        "body": body,
        "fresh": coefficients.fresh(report, project),
        "people": people,
        "named": people.named,
        "field": field,
        "chart": grid(field["pairs"], people) if field else None,
        "matrix": _matrix(field, request.GET.get("pair", ""), people),
        "pairs": _listed(field["pairs"], people) if field else [],
        "items": body.get("items"),
        "item_chart": grid(body["items"]["pairs"], people, "share") if body.get("items") else None,
        "job": jobs(project).get("match"),
        "waiting": matching.waiting(project),
    }
    return render(request, "annotation/agreement.html", context)


def _chosen(listed: list[dict[str, Any]], key: str) -> dict[str, Any] | None:
    return next((field for field in listed if field["key"] == key), listed[0] if listed else None)


def _matrix(field: dict[str, Any] | None, key: str, people: Faces) -> dict[str, Any] | None:
    """The pair of the address, else the one with most units in common."""
    if not field or not field["pairs"]:
        return None
    for pair in field["pairs"]:
        if "-".join(str(people.number(user)) for user in pair["raters"]) == key:
            return matrix(field, pair, people)
    return matrix(field, field["pairs"][0], people)


def _listed(pairs: list[dict[str, Any]], people: Faces) -> list[dict[str, Any]]:
    named = []
    for pair in pairs:
        one, two = pair["raters"]
        key = f"{people.number(one)}-{people.number(two)}"
        named.append({**pair, "key": key, "first": people.label(one), "second": people.label(two)})
    return named


@member(access.READER)
@never_cache
@require_GET
def agreement_tasks(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """The tasks behind one cell of a confusion matrix: `?field=&pair=1-2&first=value&second=value`."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    people = page_context.seen_as(request, membership, project)
    given = request.GET
    values = (given.get("first", "")[:80].replace("\0", ""), given.get("second", "")[:80].replace("\0", ""))
    found = cell(project, people, given.get("field", ""), given.get("pair", ""), values)
    if found is None:
        raise Http404("no such cell")
    ids = tasks_behind(project, found, whole_number(given.get("after", "")) or 0, CELL_PAGE + 1)
    rest = given.copy()
    rest["after"] = str(ids[CELL_PAGE - 1]) if len(ids) > CELL_PAGE else ""
    context = page_context.context(membership, project, "agreement") | {
        "field": found.field,
        "says": found.says(),
        "raters": [people.label(user) for user in found.raters],
        "rows": review.listed(project, ids[:CELL_PAGE]),
        "next": rest.urlencode() if rest["after"] else "",
        "back": f"?field={found.field.key}&pair={given.get('pair')}" + ("&names=1" if people.named else ""),
    }
    return render(request, "annotation/agreement_tasks.html", context)


@member(access.READER)
@never_cache
@require_GET
def project_review(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """The tasks to decide, least agreement first, the decisions so far, and requests to change the guidelines."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    refresh.current_report(project)
    matching.ask(project)
    show = request.GET.get("show", "open")
    show = show if show in review.SHOWN else "open"
    people, remarks = faces(project), review.comments(project)
    ids, following = review.least_agreement(project, show, request.GET.get("after", "")[:60])
    context = page_context.context(membership, project, "review") | {
        "far": review.review_progress(project),
        "show": show,
        "rows": review.listed(project, ids),
        "next": f"?show={show}&after={following}" if following else "",
        "first": ids[0] if ids else None,
        "comments": [comment(each, people) for each in remarks[:REMARKS]],
        "more_remarks": max(0, remarks.count() - REMARKS),
        "job": jobs(project).get("majority"),
    }
    return render(request, "annotation/review.html", context)


@member(access.READER)
@never_cache
@require_GET
def review_task(request: HttpRequest, project_id: int, task_id: int) -> HttpResponseBase:
    """One task: answers side by side, and the rows to decide."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    task = access.task_read(membership, task_id)
    if task.project_id != project.pk:
        raise Http404("no such task")
    refresh.review_tasks(project, [task.pk])
    people = page_context.seen_as(request, membership, project)
    context = page_context.context(membership, project, "review") | {
        "task": task,
        "data": task_page.task(review.task_in_review(task), people),
        "far": review.review_progress(project),
    }
    return render(request, "annotation/review_task.html", context)


@member(access.READER)
@require_POST
def review_match(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """Starts another try to match by meaning."""
    project = access.project_read(require(request), project_id)
    matching.ask(project, again=True)
    return redirect("project_agreement", project_id)


@member(access.READER)
@require_POST
def review_majority(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """Accepts every majority, or takes them all back."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    try:
        if request.POST.get("undo"):
            taken = services.withdraw_majority(membership, project)
            messages.info(request, f"{taken:,} decisions by majority were undone.")
        elif (done := services.accept_majority(membership, project)) is None:
            messages.info(request, "There are many tasks; a job accepts their majorities.")
        else:
            messages.success(request, f"{done:,} task{'s' if done != 1 else ''} resolved by majority.")
    except Conflict as conflict:
        messages.error(request, conflict.message)
    return redirect("project_review", project_id)


urls: list[URLPattern] = [
    path("projects/<int:project_id>/agreement", project_agreement, name="project_agreement"),
    path("projects/<int:project_id>/agreement/tasks", agreement_tasks, name="agreement_tasks"),
    path("projects/<int:project_id>/review", project_review, name="project_review"),
    path("projects/<int:project_id>/review/match", review_match, name="review_match"),
    path("projects/<int:project_id>/review/majority", review_majority, name="review_majority"),
    path("projects/<int:project_id>/review/<int:task_id>", review_task, name="review_task"),
]
