"""The form that launches a run, forks one, or trains on people's answers."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from trainer.config import RECIPES, ConfigInvalid
from webapp.accounts.access import member, require
from webapp.annotation import access as annotation
from webapp.core.problems import Problem
from webapp.core.requests.numbers import whole_number

from .. import access
from ..outputs import starting_points
from ..recipes.views import gallery_page
from . import answers_to_model
from .forms import RunForm


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def run_new(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    if request.method == "POST":
        return submitted(request, RunForm.posted(membership, request.POST))
    dataset = request.GET.get("dataset", "")[:120].replace("\0", "")
    if request.GET.get("recipe") not in RECIPES:
        return gallery_page(request, dataset)
    given = {path[3:]: str(value) for path, value in request.GET.items() if path.startswith("at.")}
    form = RunForm.blank(membership, request.GET["recipe"], dataset, given)
    form.experiment = request.GET.get("experiment", "")[:120]
    if dataset:  # a person who comes with data reads at once if the recipe cannot learn from it
        form.check()
        form.problems = {path: told for path, told in form.problems.items() if path == "dataset"}
    return render(request, "experiments/run_new.html", {"form": form})


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def run_fork(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The form filled in with the values of run `run_id`; changes are marked."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    if why := run.not_here:
        messages.info(request, why.message)
        return redirect("run", run_id)
    if request.method == "POST":
        return submitted(request, RunForm.posted(membership, request.POST, forked_from=run))
    start = whole_number(request.GET.get("step", ""), 9) or 0
    if start and not any(each.step == start for each in starting_points.checkpoints(run)):
        messages.info(
            request,
            f"{run} no longer keeps its checkpoint of step {start}: a run of this form starts from the beginning.",
        )
        start = 0
    return render(request, "experiments/run_new.html", {"form": RunForm.of_run(membership, run, start)})


def submitted(request: HttpRequest, form: RunForm) -> HttpResponse:
    """Launches or keeps a draft on their buttons; every other change only checks and draws the form again."""
    action = request.POST.get("action", "")
    if action in ("launch", "draft"):
        run = form.launch() if action == "launch" else form.save()
        if run is not None:
            return to_run(request, run.pk)
    else:
        form.check()
    if request.headers.get("HX-Request"):
        return render(request, "experiments/_form.html", {"form": form})
    return render(request, "experiments/run_new.html", {"form": form}, status=422 if form.problems else 200)


def to_run(request: HttpRequest, run_id: int) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"HX-Redirect": f"/runs/{run_id}"})
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def train_on_answers(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """One click from people's comparisons to a reward model that learns from them."""
    membership = require(request)
    project = annotation.project_write(membership, project_id)
    try:
        run = answers_to_model.train(membership, project)
    except ConfigInvalid as error:
        messages.error(request, f"The run was not started. {'; '.join(each.message for each in error.problems)}")
        return redirect("project_answers", project.pk)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("project_answers", project.pk)
    return redirect("run", run.pk)
