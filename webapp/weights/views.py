"""Pages of jobs that need weights: all of them, one of them, and the form that lets a model answer a dataset."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from trainer.config.errors import ConfigInvalid
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.paging import page
from webapp.core.problems import Conflict, Invalid
from webapp.datasets.models import Dataset
from webapp.inference.models import RegisteredModel

from . import access, services
from .forms import GenerateForm
from .models import WeightsJob, WeightsLogLine

LINES = 200


@member(Role.REVIEWER)
@never_cache
@require_GET
def jobs(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    rows = WeightsJob.objects.filter(workspace_id=membership.workspace_id).select_related("created_by")
    kind = request.GET.get("kind", "")
    rows = rows.filter(kind=kind) if kind in WeightsJob.Kind.values else rows
    try:
        found = page(rows, request.GET.get("cursor"), 50, "-id")
    except Invalid:
        return redirect("weights_jobs")
    context = {"rows": found.items, "next": found.next, "kind": kind, "kinds": WeightsJob.Kind.choices}
    return render(request, "weights/jobs.html", {**context, "may_write": membership.may(Role.RESEARCHER)})


@member(Role.REVIEWER)
@never_cache
@require_GET
def job(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """The page, or its moving part for HTMX."""
    membership = require(request)
    row = access.job_read(membership, job_id)
    lines = list(reversed(WeightsLogLine.objects.filter(job=row).order_by("-id")[:LINES]))
    made = row.outcome.get("models", [])
    context = {
        "job": row,
        "lines": lines,
        "models": RegisteredModel.objects.filter(workspace=row.workspace, id__in=made),
        "dataset": Dataset.objects.filter(workspace=row.workspace, id=row.outcome.get("dataset", 0)).first(),
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "weights/_job.html" if request.headers.get("HX-Request") else "weights/job.html", context)


@member(Role.RESEARCHER)
@require_POST
def job_act(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """Stop or retry."""
    membership = require(request)
    row = access.job_write(membership, job_id)
    act = {"stop": services.stop, "retry": services.retry}.get(request.POST.get("action", ""))
    if act is None:
        raise Http404("no such action")
    try:
        act(row, membership.user)
    except Conflict as problem:
        messages.error(request, problem.message)
    return redirect("weights_job", job_id)


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def generate(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    initial = {name: request.GET[name] for name in ("model", "dataset_version", "split") if name in request.GET}
    form = GenerateForm(membership, request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        model, version = form.cleaned_data["model"], form.cleaned_data["dataset_version"]
        try:
            row = services.generate(membership.workspace, membership.user, model, version, form.params())
        except ConfigInvalid as problem:
            for each in problem.problems:
                form.add_error(each.path if each.path in form.fields else None, each.message)
        except Invalid as problem:
            for field, reason in problem.fields.items():
                form.add_error(field if field in form.fields else None, reason)
        else:
            return redirect("weights_job", row.pk)
    return render(request, "weights/generate.html", {"form": form}, status=422 if form.is_bound else 200)
