"""A dataset made of rollouts, from the page of a run."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from webapp.accounts.access import member, require
from webapp.core.problems import Problem

from .. import access
from . import datasets


@member(access.WRITER)
@require_POST
def run_rollouts_dataset(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Makes a dataset of rollouts; the import's page says how far it is."""
    membership = require(request)
    run = access.run_read(membership, run_id)
    try:
        wanted = datasets.wanted_of(request.POST.dict())
        job = datasets.start(membership, run, wanted, request.POST.get("name", ""))
    except Problem as problem:
        messages.error(request, " ".join([problem.message, *(f"{path} {why}." for path, why in _fields(problem))]))
        return redirect("run_tab", run_id, "rollouts")
    return redirect("import_job", job.pk)


def _fields(problem: Problem) -> list[tuple[str, str]]:
    return [(path.capitalize(), why) for path, why in (problem.fields or {}).items()]
