"""Pages of drafts: the form that changes one, and the button that launches it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from trainer.config import ConfigInvalid
from webapp.accounts.access import member, require
from webapp.core.problems import Problem

from .. import access
from . import discarding, drafts
from .draft_forms import DraftForm
from .views import submitted, to_run


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def run_edit(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The form of a draft. If it was launched in another tab, the page of the run opens."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    if not run.is_draft:
        messages.info(request, f"{run} was launched already.")
        return to_run(request, run_id)
    if request.method == "POST":
        return submitted(request, DraftForm.edited(membership, request.POST.dict(), run))
    form = DraftForm.of_draft(membership, run)
    form.check()
    return render(request, "experiments/run_new.html", {"form": form})


@member(access.WRITER)
@require_POST
def run_launch(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A second press, or a press on an old page, finds the run launched and only shows it."""
    membership = require(request)
    try:
        drafts.launch(membership, access.run_write(membership, run_id))
    except ConfigInvalid as error:
        messages.error(request, f"Nothing was launched. {'; '.join(each.message for each in error.problems)}")
    except Problem as problem:
        messages.error(request, f"Nothing was launched. {'; '.join(problem.fields.values()) or problem.message}")
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_discard(request: HttpRequest, run_id: int) -> HttpResponseBase:
    membership = require(request)
    run = access.run_write(membership, run_id)
    try:
        discarding.discard(membership, run)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("run", run_id)
    messages.success(request, f"Discarded the draft {run}.", extra_tags=reverse("run_restore", args=[run_id]))
    return redirect("runs")


@member(access.WRITER)
@require_POST
def run_restore(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A second press finds the draft restored and only shows it."""
    discarding.restore(require(request), run_id)
    return redirect("run", run_id)
