"""Pages of sweeps: the list, the form that makes a sweep from a run or another sweep, the state of a sweep, and its buttons."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from trainer.config import ConfigInvalid
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.problems import Problem
from webapp.core.requests.numbers import whole_number

from .. import access, queries, recipe_metrics
from ..models import Sweep
from . import bases, choosing, contour, contour_picture, drawing, failed_runs, importance, outcomes, reading, services
from .forms import SweepForm

MOST_SHOWN = 100


@member(access.READER)
@never_cache
@require_GET
def sweeps(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    context = {
        "sweeps": list(outcomes.with_outcomes(queries.sweeps(membership.workspace_id))[:MOST_SHOWN]),
        "most": MOST_SHOWN,
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "experiments/sweeps/sweeps.html", context)


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def sweep_new(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The form, filled in from a run; it is checked with every change, and launched by its button."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    if why := run.not_here:
        messages.info(request, why.message)
        return redirect("run", run_id)
    return _form(request, bases.of_run(run))


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def sweep_again(request: HttpRequest, sweep_id: int) -> HttpResponseBase:
    """The same form, filled in from a sweep, which may still be under way."""
    return _form(request, bases.of_sweep(access.sweep_write(require(request), sweep_id)))


def _form(request: HttpRequest, base: bases.SweepBase) -> HttpResponseBase:
    membership = require(request)
    if request.method == "GET":
        form = SweepForm.blank(membership, base)
        if base.axes:
            form.check()
        return render(request, "experiments/sweeps/new.html", {"form": form})
    form, partial = SweepForm.posted(membership, base, request.POST), bool(request.headers.get("HX-Request"))
    if request.POST.get("action") == "launch":
        sweep = form.launch()
        if sweep is not None and partial:
            return HttpResponse(status=204, headers={"HX-Redirect": f"/experiments/sweeps/{sweep.pk}"})
        if sweep is not None:
            return redirect("sweep", sweep.pk)
    else:
        form.check()
    if partial:
        return render(request, "experiments/sweeps/_form.html", {"form": form})
    return render(request, "experiments/sweeps/new.html", {"form": form}, status=422 if form.problems else 200)


@member(access.READER)
@never_cache
@require_GET
def sweep(request: HttpRequest, sweep_id: int) -> HttpResponseBase:
    return render(request, "experiments/sweeps/sweep.html", _standing(request, sweep_id))


@member(access.READER)
@never_cache
@require_GET
def sweep_standing(request: HttpRequest, sweep_id: int) -> HttpResponseBase:
    """A fragment of that page, which asks for it again until the sweep is over."""
    return render(request, "experiments/sweeps/_standing.html", _standing(request, sweep_id))


def _standing(request: HttpRequest, sweep_id: int) -> dict[str, Any]:
    membership = require(request)
    row = access.sweep_read(membership, sweep_id)
    found = reading.standing(row)
    recipe = recipe_metrics.recipe_of(row.recipe)
    label = recipe_metrics.label(row.recipe, row.metric)
    known = [(values, value) for _, values, value in found.known]
    return {
        "sweep": row,
        "standing": found,
        "metric": recipe.metric(row.metric) if recipe else None,
        "rungs": choosing.rungs(row.first_rung, row.factor, choosing.most_steps(found.axes, row.config["steps"])),
        "runs_query": f"sweep:{row.pk} is:any",
        "failed_query": f"sweep:{row.pk} state:failed is:any",
        "label": label,
        "picture": drawing.parallel(found, label),
        "surface": _surface(request, row.higher, found),
        "weights": importance.weights(found.axes, known),
        "may_write": membership.may(Role.RESEARCHER),
        "may_resume_failed": failed_runs.may_resume(row, len(found.rows)),
    }


def _surface(request: HttpRequest, higher: bool, found: reading.SweepStanding) -> dict[str, Any] | None:
    """The contour over the two keys in the request, else the first two; None if the sweep has no two keys of numbers."""
    sides = contour.numeric_axes(found.axes)
    if len(sides) < 2 or not found.rows:
        return None
    x = next(path for path in (request.GET.get("x"), *sides) if path in sides)
    y = next(path for path in (request.GET.get("y"), *sides) if path in sides and path != x)
    picture = contour_picture.drawn(contour.make_contour(sides[x], sides[y], found.known), higher)
    return {"paths": list(sides), "x": x, "y": y, "picture": picture}


@member(access.WRITER)
@require_POST
def sweep_stop(request: HttpRequest, sweep_id: int) -> HttpResponseBase:
    """A second press finds it stopping, or over, and changes nothing."""
    return _changed(request, sweep_id, services.stop)


@member(access.WRITER)
@require_POST
def sweep_resume(request: HttpRequest, sweep_id: int) -> HttpResponseBase:
    return _changed(request, sweep_id, services.resume)


@member(access.WRITER)
@require_POST
def sweep_resume_failed(request: HttpRequest, sweep_id: int) -> HttpResponseBase:
    """A second press finds the runs in the line, and changes nothing."""
    membership = require(request)
    try:
        found = failed_runs.resume_failed(membership, access.sweep_write(membership, sweep_id))
    except Problem as problem:
        messages.info(request, problem.message)
    else:
        messages.info(request, found.words)
    return redirect("sweep", sweep_id)


@member(access.WRITER)
@require_POST
def sweep_add(request: HttpRequest, sweep_id: int) -> HttpResponseBase:
    trials = whole_number(request.POST.get("trials", "").strip(), 5) or 0
    return _changed(request, sweep_id, lambda membership, row: services.add(membership, row, trials))


def _changed(request: HttpRequest, sweep_id: int, change: Callable[[Membership, Sweep], Sweep]) -> HttpResponseBase:
    membership = require(request)
    try:
        change(membership, access.sweep_write(membership, sweep_id))
    except ConfigInvalid as error:
        messages.error(request, "; ".join(f"{each.path}: {each.message}" for each in error.problems))
    except Problem as problem:
        messages.info(request, problem.message)
    return redirect("sweep", sweep_id)
