"""Pages of chains: the steps after a run, and the forms that add one."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from trainer.config import RECIPES, ConfigInvalid
from webapp.accounts.access import member, require
from webapp.core.pages import confirmation
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests.numbers import whole_number

from .. import access as runs
from ..models import ChainStep
from . import access, queries, services
from .forms import StepForm


@member(runs.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def chain_new(request: HttpRequest, run_id: int, behind_id: int, recipe: str) -> HttpResponseBase:
    """The form of a run that is launched once the previous one has finished."""
    membership = require(request)
    run, behind = access.behind(membership, run_id, behind_id)
    if recipe not in RECIPES:
        raise Http404("no such recipe")
    if run.not_here:
        raise Http404("nothing comes after this run")
    if request.method == "POST":
        form = StepForm.posted(membership, request.POST)
        assert isinstance(form, StepForm)  # noqa: S101  # made by its own class
        form.with_output = request.POST.get("with_output") == "on"
        form.also, form.also_steps = _also(request), _also(request, queries.STEP)
        return _submitted(request, form.stand(run, behind))
    form = StepForm.blank(membership, recipe, f"{run.data.dataset_id}:{run.data.number}")
    assert isinstance(form, StepForm)  # noqa: S101
    form.stand(run, behind).begin()
    form.experiment = run.experiment.name
    return render(request, "experiments/chain_new.html", {"form": form})


def _submitted(request: HttpRequest, form: StepForm) -> HttpResponse:
    """Adds the step on the launch button; every other change only checks and draws the form again."""
    hx = request.headers.get("HX-Request")
    if request.POST.get("action") == "launch":
        step = form.add()
        if step is not None and form.first:
            there = reverse("run_tab", args=[form.first.pk, "chain"])
            return HttpResponse(status=204, headers={"HX-Redirect": there}) if hx else redirect(there)
    else:
        form.check()
    status = 422 if form.problems and not hx else 200
    page = "experiments/_form.html" if hx else "experiments/chain_new.html"
    return render(request, page, {"form": form}, status=status)


@member(runs.WRITER)
@require_POST
def chain_evaluate(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """An evaluation of the run's held-out responses, once it has finished."""
    membership = require(request)
    run, behind = access.behind(membership, run_id, whole_number(request.POST.get("behind", ""), 12) or 0)
    if run.not_here:
        raise Http404("nothing comes after this run")
    judge = whole_number(request.POST.get("judge", ""), 12)
    asked = services.StepAsked(
        kind=ChainStep.Kind.EVALUATION,
        config={"judge": judge} if judge else {},
        dataset=services.dataset_of(run, behind),
        name=request.POST.get("name", ""),
        also=_also(request),
        also_steps=_also(request, queries.STEP),
    )
    try:
        services.add(membership, run, asked, behind, request.POST.get("key", "")[:64] or None)
    except (ConfigInvalid, Invalid) as error:
        messages.error(request, "; ".join(services.invalid(error).values()))
    except Conflict as error:
        messages.error(request, error.message)
    return redirect("run_tab", run_id, "chain")


def _also(request: HttpRequest, before: str = "") -> tuple[int, ...]:
    """The other runs that are ticked, or the steps, whose values begin with `before`."""
    ticked = [each.removeprefix(before) for each in request.POST.getlist("also") if each.startswith(before)]
    return tuple(filter(None, (whole_number(each, 12) for each in ticked)))


@member(runs.WRITER)
@never_cache
@require_http_methods(["GET"])
def chain_recipe(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Leads from the choice of a recipe to its form."""
    access.behind(require(request), run_id, behind := whole_number(request.GET.get("behind", ""), 12) or 0)
    recipe = request.GET.get("recipe", "")
    if recipe not in RECIPES:
        raise Http404("no such recipe")
    return redirect("chain_new", run_id, behind, recipe)


@member(runs.WRITER)
@require_POST
def chain_cancel(request: HttpRequest, run_id: int, step_id: int) -> HttpResponseBase:
    """Asks first, because the form of a step cannot be brought back. A second press finds it cancelled, and changes nothing."""
    membership = require(request)
    run, step = access.step_write(membership, run_id, step_id)
    back = reverse("run_tab", args=[run_id, "chain"])
    title, yes = f"Cancel “{step}”?", "Cancel the step"
    if step.state == ChainStep.State.WAITING and (
        asked := confirmation.question(request, title=title, text=services.ends_with(step), yes=yes, back=back)
    ):
        return asked
    try:
        services.cancel(membership, run, step)
    except Conflict as error:
        messages.error(request, error.message)
    return redirect("run_tab", run_id, "chain")
