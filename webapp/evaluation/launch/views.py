"""Pages on which evaluations are found, started, moved, named and deleted. Reading needs the role reviewer, changing anything
researcher."""

from uuid import uuid4

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from trainer.config.errors import ConfigInvalid
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.background.priorities import Priority
from webapp.core.database.paging import page
from webapp.core.pages import confirmation
from webapp.core.problems import Invalid, Problem

from .. import access, queries
from ..models import Evaluation
from ..recipes import RECIPES
from . import services
from .forms import EvaluationForm

State = Evaluation.State
PAGE = 50


@member(access.READER)
@never_cache
@require_GET
def evaluations(request: HttpRequest) -> HttpResponseBase:
    """All evaluations of the workspace, newest first, each with its headline number."""
    membership = require(request)
    filters = {name: request.GET.get(name, "").strip().replace("\0", "") for name in ("q", "state", "recipe")}
    found = queries.filtered(
        membership.workspace_id, state=filters["state"], recipe=filters["recipe"], words=filters["q"]
    )
    try:
        listed = page(found, request.GET.get("cursor"), PAGE)
    except Problem:  # the cursor is one of another list, or was cut or typed by hand: begin at the beginning
        return redirect("evaluations")
    headlines = queries.headlines([row.pk for row in listed.items])
    rest = request.GET.copy()
    rest["cursor"] = listed.next or ""
    context = {
        "rows": [(row, headlines.get(row.pk), RECIPES.get(row.recipe)) for row in listed.items],
        "filters": filters,
        "filtered": any(filters.values()),
        "states": State.choices,
        "recipes": RECIPES.values(),
        "next": rest.urlencode() if listed.next else "",
        "may_write": membership.may(Role.RESEARCHER),
        "request_key": uuid4().hex,
    }
    return render(request, "evaluation/evaluations.html", context)


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def evaluation_new(request: HttpRequest) -> HttpResponseBase:
    """The choice of recipes or, with a recipe, its form."""
    membership = require(request)
    recipe = request.GET.get("recipe", "")
    if recipe not in RECIPES:
        return render(request, "evaluation/choose.html", {"recipes": RECIPES.values()})
    if request.method == "POST":
        return _submitted(request, EvaluationForm.posted(membership, recipe, request.POST))
    return render(request, "evaluation/new.html", {"form": EvaluationForm.blank(membership, recipe, request.GET)})


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def evaluation_again(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The form filled in with the values of that evaluation; changes are marked."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    if row.recipe not in RECIPES:
        raise Http404("this recipe no longer exists")
    if request.method == "POST":
        return _submitted(request, EvaluationForm.posted(membership, row.recipe, request.POST, row))
    return render(request, "evaluation/new.html", {"form": EvaluationForm.of(membership, row)})


def _submitted(request: HttpRequest, form: EvaluationForm) -> HttpResponse:
    if request.POST.get("action") == "start":
        row = form.create()
        if row is not None:
            if request.headers.get("HX-Request"):
                return HttpResponse(status=204, headers={"HX-Redirect": reverse("evaluation", args=[row.pk])})
            return redirect("evaluation", row.pk)
    else:
        form.check()
    if request.headers.get("HX-Request"):
        return render(request, "evaluation/_form.html", {"form": form})
    return render(request, "evaluation/new.html", {"form": form}, status=422 if form.problems else 200)


@member(access.WRITER)
@require_POST
def evaluation_rerun(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """Runs the stored config again; with `resample`, judges are asked again."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    try:
        key, resample = request.POST.get("key", "")[:64] or None, request.POST.get("resample") == "1"
        again = services.rerun(membership, row, key, resample=resample)
    except (Problem, ConfigInvalid) as problem:
        messages.error(request, f"This evaluation cannot be run again as it was: {problem}")
        return redirect("evaluation_config", evaluation_id)
    return redirect("evaluation", again.pk)


@member(access.WRITER)
@require_POST
def evaluation_move(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """Pauses, resumes or cancels. If the page was old, it shows the present state."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    to, back = request.POST.get("to", ""), reverse("evaluation", args=[row.pk])
    text = "You cannot continue it afterwards. The answers of judges stay in their verdicts, and judges are not asked again."
    title = f"Cancel “{row.name}” for good?"
    if to == State.CANCELLED and (
        asked := confirmation.question(request, title=title, text=text, yes="Cancel it", back=back)
    ):
        return asked
    try:
        services.move(membership, row, to)
    except Problem as problem:
        messages.info(request, problem.message)
    return redirect("evaluation", row.pk)


@member(access.WRITER)
@require_POST
def evaluation_priority(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    wanted = request.POST.get("priority", "").upper()
    try:
        if wanted not in Priority.names:
            raise Invalid("There is no such priority: low, normal or high.")
        services.prioritise(membership, row, Priority[wanted])
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("evaluation", row.pk)


@member(access.WRITER)
@require_POST
def evaluation_rename(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    try:
        services.rename(membership, row, request.POST.get("name", ""))
    except Problem as problem:
        messages.error(request, problem.fields.get("name", problem.message))
    return redirect("evaluation", row.pk)


@member(access.WRITER)
@require_POST
def evaluation_delete(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    title = str(row)
    try:
        services.delete(membership, row)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("evaluation", evaluation_id)
    messages.success(request, f"Deleted {title}.")
    return redirect("evaluations")


urls = [
    path("evaluations", evaluations, name="evaluations"),
    path("evaluations/new", evaluation_new, name="evaluation_new"),
    path("evaluations/<int:evaluation_id>/again", evaluation_again, name="evaluation_again"),
    path("evaluations/<int:evaluation_id>/rerun", evaluation_rerun, name="evaluation_rerun"),
    path("evaluations/<int:evaluation_id>/move", evaluation_move, name="evaluation_move"),
    path("evaluations/<int:evaluation_id>/priority", evaluation_priority, name="evaluation_priority"),
    path("evaluations/<int:evaluation_id>/rename", evaluation_rename, name="evaluation_rename"),
    path("evaluations/<int:evaluation_id>/delete", evaluation_delete, name="evaluation_delete"),
]
