"""The page of answers, publishing them, and the page of a publication."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts.access import member, require
from webapp.core.problems import Invalid, Problem
from webapp.core.requests.numbers import whole_number
from webapp.datasets.leakage import leaks

from .. import access, page_context
from ..agreement import refresh
from ..jobs.queries import jobs
from ..review import queries as review
from . import answers
from . import queries as publications
from . import services as publish

ANSWERS_PAGE = CASES_PAGE = 50


@member(access.READER)
@never_cache
@require_GET
def project_answers(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """All answers, oldest first; exports; publishing."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    refresh.current_report(project)
    people = page_context.seen_as(request, membership, project)
    after_id = whole_number(request.GET.get("after", "")) or 0
    rows = answers.page(project, people, after_id, ANSWERS_PAGE + 1)
    context = page_context.context(membership, project, "answers") | {
        "rows": [{**row, "says": answers.says(row)} for row in rows[:ANSWERS_PAGE]],
        "next": rows[ANSWERS_PAGE - 1]["id"] if len(rows) > ANSWERS_PAGE else None,
        "started": bool(after_id),
        "named": people.named,
        "far": review.review_progress(project),
        "job": jobs(project).get("publish"),
        "publications": [
            (made, publications.labels(made)) for made in publications.publications(project)[: publications.SHOWN]
        ],
        "earlier": publications.publications_without_fates(project),
        "bases": publications.bases(project),
        "usual": publish.usual(project),
    }
    return render(request, "annotation/answers.html", context)


@member(access.WRITER)
@require_POST
def project_publish(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """Makes a version with the choices of the page of answers."""
    membership = require(request)
    project = access.project_write(membership, project_id)
    given, begun = request.POST, timezone.now()
    try:
        choice = publish.Choice(
            what="answers" if given.get("what") == "answers" else "resolutions",
            minimum=_share(given.get("minimum", "")),
            sources=tuple(given.getlist("sources")),
            replace=given.get("replace") == "on",
            rest=given.get("rest") == "on",
            base=_number(given.get("base", "")),
        )
        made = publish.start(membership, project, choice)
    except Problem as problem:
        messages.error(request, f"{problem.message} {'; '.join(problem.fields.values())}".strip())
        return redirect("project_answers", project_id)
    if made is None:
        messages.info(request, "There are many answers; a job publishes them. The new version appears here.")
        return redirect("project_answers", project_id)
    version = made.version
    if version.frozen_at and version.frozen_at < begun:
        messages.info(request, f"Nothing new: version {version.number} of {version.dataset} has these answers already.")
    else:
        messages.success(request, f"Published as version {version.number} of {version.dataset}.")
    return redirect("publication", project_id, made.pk)


@member(access.READER)
@require_GET
def publication(request: HttpRequest, project_id: int, publication_id: int) -> HttpResponseBase:
    """A published version: how many labels are in it, were replaced or dropped, and each of these labels."""
    membership = require(request)
    made = access.publication_read(membership, project_id, publication_id)
    fate, reason = request.GET.get("fate", ""), request.GET.get("reason", "")
    fate = fate if fate in publications.Fate.values else ""
    reason = reason if reason in publications.Reason.values else ""
    rows = publications.cases(made, fate, reason, whole_number(request.GET.get("after", "")) or 0, CASES_PAGE + 1)
    rest = request.GET.copy()
    rest["after"] = str(rows[CASES_PAGE - 1].pk) if len(rows) > CASES_PAGE else ""
    context = page_context.context(membership, made.project, "answers") | {
        "made": made,
        **leaks.leaks_of_version(made.version),
        "labels": publications.labels(made),
        "base": publications.base_number(made),
        "fate": fate,
        "reason": reason,
        "rows": rows[:CASES_PAGE],
        "next": rest.urlencode() if rest["after"] else "",
    }
    return render(request, "annotation/publication.html", context)


def _share(text: str) -> float:
    try:
        return float(text or 0)
    except ValueError as error:
        raise Invalid("The least agreement is not a number.", {"minimum": "must be between 0 and 1"}) from error


def _number(text: str) -> int | None:
    """The number of a version; None for the annotated one."""
    if not text:
        return None
    if (found := whole_number(text)) is None:
        raise Invalid("There is no such version to build on.", {"base": "must be the number of a version"})
    return found


urls: list[URLPattern] = [
    path("projects/<int:project_id>/answers", project_answers, name="project_answers"),
    path("projects/<int:project_id>/publish", project_publish, name="project_publish"),
    path("projects/<int:project_id>/publications/<int:publication_id>", publication, name="publication"),
]
