"""The page on which people send recorded verdicts. It needs the role researcher."""

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from webapp.accounts.access import member, require
from webapp.core.problems import Invalid

from .. import access
from ..launch.forms import EvaluationForm
from ..recipes import RECIPES
from . import services


@member(access.WRITER)
@require_POST
def recording_new(request: HttpRequest) -> HttpResponseBase:
    """Takes a file of recorded verdicts and opens the form of the recipe that reads it."""
    membership = require(request)
    recipe = request.POST.get("recipe", "")
    recipe = recipe if recipe in RECIPES else "judge_audit"
    file = request.FILES.get("file")
    try:
        if file is None:
            raise Invalid("Nothing was sent.", {"file": "choose a file of recorded verdicts"})
        row = services.store_recording(membership, (file.name or "")[:100], file.read(services.MAX_RECORDING + 1))
    except Invalid as problem:
        form = EvaluationForm.blank(membership, recipe, request.GET)
        refused = f"{problem.message} {problem.fields.get('file', '')}"
        return render(request, "evaluation/new.html", {"form": form, "refused": refused}, status=422)
    return redirect(f"{reverse('evaluation_new')}?recipe={recipe}&recording={row.pk}")


urls = [path("evaluations/recordings", recording_new, name="recording_new")]
