"""Pages of jobs that need weights: all of them, one of them, and the form for a new one."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from trainer.config.errors import ConfigInvalid
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.background.priorities import Priority
from webapp.core.database.paging import page
from webapp.core.problems import Conflict, Invalid
from webapp.inference.models import RegisteredModel

from . import access, services
from .forms import JobForm
from .models import WeightsJob, WeightsLogLine

LINES = 200
RELATED = 20


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
        "evaluations": row.evaluations.order_by("-id")[:RELATED],
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "weights/_job.html" if request.headers.get("HX-Request") else "weights/job.html", context)


@member(Role.RESEARCHER)
@require_POST
def job_act(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """Stop, retry, or another priority; from the page of the job or from the line, and back to there."""
    membership = require(request)
    row = access.job_write(membership, job_id)
    back = redirect("runs_line") if request.POST.get("from") == "line" else redirect("weights_job", job_id)
    wanted = request.POST.get("priority", "").upper()
    if wanted in Priority.names:
        services.prioritise(row, membership.user, Priority[wanted])
        return back
    act = {"stop": services.stop, "retry": services.retry}.get(request.POST.get("action", ""))
    if act is None:
        raise Http404("no such action")
    try:
        act(row, membership.user)
    except Conflict as problem:
        messages.error(request, problem.message)
    return back


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponseBase:
    """Scores, log-probabilities or embeddings of a dataset's texts. `?kind=` and its other fields fill it in."""
    membership = require(request)
    names = ("kind", "model", "dataset_version", "split", "texts", "per_token")
    initial = {name: request.GET[name] for name in names if name in request.GET}
    form = JobForm(membership, request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            return redirect("weights_job", _started(membership, form).pk)
        except ConfigInvalid as problem:
            for each in problem.problems:
                name = each.path.rpartition(".")[2]
                form.add_error(name if name in form.fields else None, each.message)
        except Invalid as problem:
            for field, reason in problem.fields.items():
                form.add_error(field if field in form.fields else None, reason)
    return render(request, "weights/new.html", {"form": form}, status=422 if form.is_bound else 200)


def _started(membership: Membership, form: JobForm) -> WeightsJob:
    """Raises ConfigInvalid and Invalid."""
    kind, model = form.cleaned_data["kind"], form.cleaned_data["model"]
    given = membership.workspace, membership.user
    version, params = form.cleaned_data["dataset_version"], form.params()
    if kind == WeightsJob.Kind.EMBED:
        return services.embed(*given, version, params)
    if model is None:
        raise Invalid("The job cannot be started.", {"model": "choose a model"})
    begin = {WeightsJob.Kind.SCORE: services.score, WeightsJob.Kind.LOGPROBS: services.log_probs}[kind]
    return begin(*given, model, version, params)
