"""The page where people try models side by side."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.requests.numbers import whole_number
from webapp.experiments import queries as experiments
from webapp.experiments.models import Run

from . import offers


@member(Role.RESEARCHER)
@never_cache
@require_GET
def page(request: HttpRequest) -> HttpResponseBase:
    """The page. `?models=7,8` chooses models, `?run=3` offers the checkpoints of a run, `?dataset=2` the prompts of a dataset."""
    membership = require(request)
    return render(request, "playground/try.html", {"offered": offered(membership, request)})


def offered(membership: Membership, request: HttpRequest) -> dict[str, Any]:
    workspace_id = membership.workspace_id
    run = _run(workspace_id, request.GET.get("run", ""))
    return {
        "models": offers.models(workspace_id),
        "run": offers.of_run(run) if run else None,
        "datasets": offers.prompts(workspace_id),
        "judges": offers.judges(workspace_id),
        "reward_models": offers.reward_models(workspace_id),
        "projects": offers.projects(workspace_id),
    }


def _run(workspace_id: int, text: str) -> Run | None:
    number = whole_number(text, 18)
    return experiments.runs(workspace_id).filter(pk=number).first() if number else None
