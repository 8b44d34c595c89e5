"""The manager's pages: the list, the form, overview, guidelines and settings of a project."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.database.paging import page
from webapp.core.problems import Conflict, Invalid, Problem
from webapp.core.requests.numbers import whole_number
from webapp.core.text.markdown import markdown

from .. import access, page_context, queries
from ..agreement import refresh
from ..agreement.wins import wins
from ..models import Project
from ..people import queries as persons
from . import advice, guideline_diffs, services
from .forms import ChangeForm, ProjectForm

PAGE = 50
MAX_PREVIEW = 100_000


@member(access.READER)
@never_cache
@require_GET
def projects(request: HttpRequest) -> HttpResponseBase:
    """All projects of the workspace, newest first."""
    membership = require(request)
    found = queries.projects(membership.workspace_id)
    wanted = request.GET.get("state", "")
    if wanted in Project.State.values:
        found = found.filter(state=wanted)
    try:
        listed = page(found, request.GET.get("cursor"), PAGE, "-id")
    except Invalid:
        return redirect("projects")
    context = {
        "rows": queries.rows(listed.items),
        "next": listed.next,
        "state": wanted,
        "states": Project.State.choices,
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "annotation/projects.html", context)


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def project_new(request: HttpRequest) -> HttpResponseBase:
    """The form. A POST makes a draft, or opens the project at once if that button was pressed."""
    membership = require(request)
    if request.method == "GET":
        like = whole_number(request.GET.get("from", ""))
        source = None if like is None else access.project_read(membership, like)
        form = ProjectForm.blank(membership, request.GET.get("version", ""), source, request.GET.get("kind", ""))
        return render(request, "annotation/project_new.html", {"form": form})
    form = ProjectForm.posted(membership, request.POST)
    project = form.create()
    if project is None:
        return render(request, "annotation/project_new.html", {"form": form}, status=422)
    if request.POST.get("then") == "open":
        services.set_state(membership, project, Project.State.OPEN)
    return redirect("project", project.pk)


@member(access.READER)
@never_cache
@require_GET
def project(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """The project's progress, pace, people, and what needs attention. htmx asks whether the tasks are there, or cannot be made (`failed`: the page says so
    already), and then loads the page again."""
    membership = require(request)
    row = access.project_read(membership, project_id)
    if request.headers.get("HX-Request"):
        news = row.tasks_made or bool(row.tasks_problem) != ("failed" in request.GET)
        return HttpResponse(status=204, headers={"HX-Refresh": "true"} if news else {})
    context = page_context.context(membership, row, "overview")
    refresh.current_report(row)
    people = persons.people(row)
    pace = queries.pace(row, context["progress"])
    remarks = queries.open_comments(row)
    context |= {
        "pace": pace,
        "throughput": queries.throughput(row),
        "people": people[:8],
        "people_count": len(people),
        "held": queries.open_seats(row),
        "warnings": advice.warnings(row, context["progress"], people, remarks, context["may_name"]),
        "steps": advice.next_steps(membership, row, context["progress"], people),
    }
    return render(request, "annotation/project.html", context)


@member(access.READER)
@never_cache
@require_GET
def project_wins(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """A fragment: which model people prefer. Empty if the responses do not name their models."""
    row = access.project_read(require(request), project_id)
    return render(request, "annotation/_wins.html", {"wins": wins(row)})


@member(access.WRITER)
@require_POST
def project_state(request: HttpRequest, project_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.project_write(membership, project_id)
    try:
        services.set_state(membership, row, request.POST.get("state", ""))
    except Problem as problem:  # an old page: somebody else changed the state meanwhile
        messages.info(request, problem.message)
    return redirect("project", project_id)


@member(access.READER)
@never_cache
@require_http_methods(["GET", "POST"])
def project_guidelines(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """The present guidelines, an editor for people who may change them, and every earlier version with its changes."""
    membership = require(request)
    row = access.project_read(membership, project_id)
    form, text, base, overtaken = ChangeForm(), None, None, ""
    if request.method == "POST":
        access.project_write(membership, project_id)
        text, base = request.POST.get("guidelines", ""), whole_number(request.POST.get("base", ""))
        try:
            services.new_guidelines(membership, row, text, base)
            messages.success(request, "People see this version from now on.")
            return redirect("project_guidelines", project_id)
        except Invalid as problem:
            form.problems = problem.fields
        except Conflict as problem:
            overtaken, base = problem.message, None  # the page shows the other version
    versions, people = list(queries.guidelines(row)[:50]), page_context.seen_as(request, membership, row)
    context = page_context.context(membership, row, "guidelines") | {
        "form": form,
        "text": versions[0].text if text is None and versions else text or "",
        "newest": versions[0] if versions else None,
        "base": base if base is not None else versions[0].number if versions else 0,
        "history": guideline_diffs.history(versions),
        "overtaken": overtaken,
        "editing": bool(form.problems or overtaken) or "edit" in request.GET,
        "named": people.named,
        "remarks": [(each, people.author(each.author)) for each in queries.guideline_remarks(row)[:20]],
    }
    status = 409 if overtaken else 422 if form.problems else 200
    return render(request, "annotation/project_guidelines.html", context, status=status)


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def project_settings(request: HttpRequest, project_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.project_write(membership, project_id)
    form = ChangeForm.of(row) if request.method == "GET" else ChangeForm.posted(row, request.POST)
    if request.method == "POST" and form.save(membership, row):
        messages.success(request, "Saved. Tasks that somebody has open do not change.")
        return redirect("project_settings", project_id)
    context = page_context.context(membership, row, "settings") | {"form": form}
    status = 409 if form.overtaken else 422 if form.problems else 200
    return render(request, "annotation/project_settings.html", context, status=status)


@member(access.WRITER)
@require_POST
def preview(request: HttpRequest) -> HttpResponseBase:
    """The Markdown in `guidelines` as it will be shown, as a fragment."""
    return HttpResponse(markdown(request.POST.get("guidelines", "")[:MAX_PREVIEW]))


@member(access.WRITER)
@require_POST
def size(request: HttpRequest) -> HttpResponseBase:
    """The estimated number of tasks, as a fragment."""
    form = ProjectForm.posted(require(request), request.POST)
    return render(request, "annotation/_project_size.html", {"size": form.size})


urls: list[URLPattern] = [
    path("projects", projects, name="projects"),
    path("projects/new", project_new, name="project_new"),
    path("projects/preview", preview, name="project_preview"),
    path("projects/size", size, name="project_size"),
    path("projects/<int:project_id>", project, name="project"),
    path("projects/<int:project_id>/wins", project_wins, name="project_wins"),
    path("projects/<int:project_id>/state", project_state, name="project_state"),
    path("projects/<int:project_id>/guidelines", project_guidelines, name="project_guidelines"),
    path("projects/<int:project_id>/settings", project_settings, name="project_settings"),
]
