"""The outputs of runs, on the pages of datasets and models."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from webapp.accounts.access import member, require
from webapp.core.problems import Problem
from webapp.inference.access import model_write

from .. import access
from . import trained_judges


@member(access.WRITER)
@require_POST
def model_as_judge(request: HttpRequest, model_id: int) -> HttpResponseBase:
    """Makes a version of a judge from a trained judge or rubric writer, in one click; a second click leads to the same version."""
    membership = require(request)
    model = model_write(membership, model_id)
    try:
        version = trained_judges.use(membership, model)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("model", model_id)
    messages.success(request, f"{version} answers as {model} was trained to. Audit it before you use it in a reward.")
    return redirect("judge", version.judge_id)
