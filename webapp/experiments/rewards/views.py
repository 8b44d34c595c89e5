"""The use and the budgets of judges, on the page of a run."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.problems import Problem

from .. import access
from ..models import OVER
from . import budgets, forms


@member(access.READER)
@never_cache
@require_GET
def run_judges(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A fragment with what the judges have used so far, and how much of their spending limit."""
    membership = require(request)
    run = access.run_read(membership, run_id)
    if not (judges := budgets.judge_budgets(run)):
        raise Http404("no judge is asked")
    context = {"run": run, "judges": judges, "is_over": run.state in OVER, "may_write": membership.may(Role.RESEARCHER)}
    return render(request, "experiments/_judges_live.html", context | {"spent": budgets.spending_of(judges)})


@member(access.WRITER)
@require_POST
def run_budget(request: HttpRequest, run_id: int, judge_id: int) -> HttpResponseBase:
    """New limits for a judge of the run; an empty field means no limit."""
    membership = require(request)
    row = access.judge_write(membership, run_id, judge_id)
    try:
        budgets.change(membership, row, *forms.budget(request.POST))
    except Problem as problem:
        messages.error(request, "; ".join(problem.fields.values()) or problem.message)
    return redirect("run", run_id)
