"""The annotator's workbench: one page per project, on which tasks change without another page load."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.accounts.models import Role

from .. import access, kinds
from ..models import Project
from . import inbox
from .queries import latest_guidelines, standing_of


@member(Role.ANNOTATOR)
@never_cache
@require_GET
def work(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """The frame of the page, without a task: the script claims tasks, and claiming takes a seat."""
    membership = require(request)
    project = access.project_work(membership, project_id)
    keys, first = standing_of(project, membership.user_id)
    guidelines = latest_guidelines(project)
    context = {
        "project": project,
        "widget": f"js/annotate/kinds/{project.kind}.js",
        "guidelines": guidelines,
        "may_read": membership.may(access.READER),
        "setup": _setup(project, membership.user_id, keys) | {"unread": first and bool(guidelines and guidelines.text)},
    }
    return render(request, "annotation/work.html", context)


def _setup(project: Project, user_id: int, own: dict[str, str]) -> dict[str, Any]:
    """The data that the script needs before the first task. Settings about gold tasks are left out: an annotator who knew when a gold task comes
    would work differently on it."""
    settings = kinds.Settings.model_validate(project.settings)
    hidden = {"gold_every", "fast_seconds", "keys", "stress_judge"}
    return {
        "project": project.pk,
        "kind": project.kind,
        "user": user_id,
        "settings": settings.model_dump(mode="json", exclude=hidden),
        "keys": {"project": settings.keys, "own": own},
        "counted": inbox.COUNTED,
    }


@member(Role.ANNOTATOR)
@never_cache
@require_GET
def guidelines(request: HttpRequest, project_id: int) -> HttpResponse:
    """The present guidelines, for a page that was opened with older ones."""
    project = access.project_work(require(request), project_id)
    return render(request, "annotation/_work_guidelines.html", {"guidelines": latest_guidelines(project)})


urls: list[URLPattern] = [
    path("projects/<int:project_id>/work", work, name="project_work"),
    path("projects/<int:project_id>/work/guidelines", guidelines, name="project_work_guidelines"),
]
