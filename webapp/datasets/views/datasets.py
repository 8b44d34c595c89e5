"""The list of datasets, and imports."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.database.paging import page
from webapp.core.problems import Conflict, Invalid, Problem
from webapp.core.requests.limits import count_seconds
from webapp.core.requests.numbers import whole_number

from .. import access, queries
from ..formats import importers
from ..formats.table import SYNONYMS
from ..ingest import services, uploads
from ..ingest.inspection import AUTO
from ..ingest.preview import preview
from ..ingest.target import ImportTarget, checked_target
from ..leakage.near_leaks import VersionPair, near_leaks_of
from ..models import ImportJob
from .forms import NewDatasetForm

PAGE = 50


@member(access.READER)
@require_GET
def datasets(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    try:
        archived = request.GET.get("archived") == "1"
        rows = queries.datasets(membership.workspace_id, archived=archived)
        found = page(rows, request.GET.get("cursor"), PAGE, "-id")
    except Invalid:
        return redirect("datasets")
    running = queries.imports(membership.workspace_id).filter(state__in=["queued", "running"]).order_by("-id")[:5]
    context = {
        "rows": found.items,
        "next": found.next,
        "archived": archived,
        "imports": running,
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "datasets/datasets.html", context)


@member(access.WRITER)
@require_http_methods(["GET", "POST"])
def import_new(request: HttpRequest) -> HttpResponseBase:
    """The form of an import. A POST stores the file, queues the import and goes to its page."""
    if request.method == "GET":
        return render(
            request, "datasets/import_new.html", {"form": NewDatasetForm(initial={"name": request.GET.get("name")})}
        )
    form = NewDatasetForm(request.POST, request.FILES)
    if form.is_valid():
        job = _start(request, form)
        if job:
            return redirect("import_job", job.pk)
    return render(request, "datasets/import_new.html", {"form": form}, status=422)


def _start(request: HttpRequest, form: NewDatasetForm) -> ImportJob | None:
    """The queued import, or None with the problems written into the form."""
    data = form.cleaned_data
    percent = data["heldout_percent"]
    try:
        with uploads.uploaded(data["file"].name, data["file"]) as path, count_seconds(require(request).user_id):
            return services.start_import(
                require(request),
                path,
                file_name=path.name,
                name=data["name"],
                format=data["format"] or AUTO,
                mapping=_mapping(request.POST),
                keep_good=data["keep_good"],
                heldout_share=None if percent is None else percent / 100,
                group_by=data["group_by"],
            )
    except Problem as problem:
        if not problem.fields:
            form.add_error(None, problem.message)
        for field, reason in problem.fields.items():
            form.add_error(field if field in form.fields else None, reason)
        return None


def _mapping(posted: QueryDict) -> dict[str, str]:
    """The mapping that a person chose; empty if it is still the guess, so that each row is read by its own columns, as in the preview."""
    chosen, guessed = (
        {field: str(posted[f"{kind}-{field}"]) for field in SYNONYMS if posted.get(f"{kind}-{field}")}
        for kind in ("map", "guessed")
    )
    return {} if chosen == guessed else chosen


@member(access.WRITER)
@require_POST
def import_preview(request: HttpRequest) -> HttpResponseBase:
    """A fragment with the first rows as they would be imported. The upload is read and deleted."""
    upload = request.FILES.get("file")
    if upload is None:
        return HttpResponse("")
    path = None
    try:
        target = _target(request)
        path = uploads.store_upload(upload.name or "upload", upload)
        with count_seconds(require(request).user_id):
            format = request.POST.get("format") or AUTO
            shown = preview(path, path.name, format, _mapping(request.POST), target)
    except Problem as problem:
        return render(request, "datasets/_preview.html", {"problem": problem}, status=problem.status)
    finally:
        if path:
            uploads.discard_upload(path)
    return render(request, "datasets/_preview.html", {"shown": shown, "fields": _fields(shown)})


def _target(request: HttpRequest) -> ImportTarget:
    """The target, as far as the form is filled in."""
    posted = request.POST
    percent = whole_number(posted.get("heldout_percent", ""), 3)
    share = None if percent is None else min(percent, 100) / 100
    return checked_target(require(request).workspace_id, posted.get("name", ""), share, posted.get("group_by", ""))


def _fields(shown: dict[str, Any]) -> list[dict[str, Any]]:
    mapping, others = shown["mapping"], shown["others"]
    return [{"name": field, "column": mapping.get(field, ""), "others": others.get(field, ())} for field in SYNONYMS]


@member(access.READER)
@require_GET
def import_job(request: HttpRequest, job_id: int) -> HttpResponseBase:
    job = access.import_read(require(request), job_id)
    template = "datasets/_import.html" if request.headers.get("HX-Request") else "datasets/import.html"
    found = near_leaks_of([VersionPair(job.version, job.version)]) if job.version else []
    format = importers.REGISTRY[job.format].label if job.format in importers.REGISTRY else job.format
    may_write = require(request).may(Role.RESEARCHER)
    return render(request, template, {"job": job, "format": format, "near": found, "may_write": may_write})


@member(access.WRITER)
@require_POST
def import_cancel(request: HttpRequest, job_id: int) -> HttpResponseBase:
    membership = require(request)
    job = access.import_write(membership, job_id)
    try:
        services.cancel_import(membership, job)
    except Conflict as problem:
        messages.info(request, problem.message)
    return redirect("import_job", job_id)
