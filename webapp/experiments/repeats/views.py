"""The page of repeated runs: what is launched when, and the form that repeats a run."""

from zoneinfo import available_timezones

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from trainer.config import RECIPES, ConfigInvalid
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership
from webapp.core.pages import confirmation
from webapp.core.problems import Problem
from webapp.core.requests import idempotency
from webapp.core.requests.numbers import whole_number

from .. import access
from ..models import Run
from . import queries, services
from .forms import RepeatForm

MOST_RUNS = 100


@member(access.READER)
@never_cache
@require_http_methods(["GET", "POST"])
def repeats(request: HttpRequest) -> HttpResponseBase:
    """The list, and below it the form; `run` in the address chooses a run."""
    membership = require(request)
    if request.method == "GET":
        return _page(request, membership, RepeatForm(run=request.GET.get("run", "")[:18]))
    access.may_write(membership)
    form = RepeatForm.posted(request.POST)
    if _added(membership, form):
        return redirect("repeats")
    return _page(request, membership, form, 422)


def _page(request: HttpRequest, membership: Membership, form: RepeatForm, status: int = 200) -> HttpResponseBase:
    rows = [(row, services.rhythm(row).words, queries.state(row)) for row in queries.repeats(membership)]
    may_write = membership.may(access.WRITER)
    context = {
        "rows": rows,
        "form": form,
        "may_write": may_write,
        "runs": _runs(membership, form) if may_write else [],
        "zones": sorted(available_timezones()) if may_write else [],
    }
    return render(request, "experiments/repeats.html", context, status=status)


def _runs(membership: Membership, form: RepeatForm) -> list[Run]:
    """The newest runs that were launched here, and the chosen one."""
    rows = Run.objects.with_names().filter(experiment__workspace_id=membership.workspace_id, recipe__in=list(RECIPES))
    rows = rows.exclude(state=Run.State.DRAFT).defer("config").order_by("-pk")
    newest = list(rows[:MOST_RUNS])
    chosen = whole_number(form.run, 18)
    found = rows.filter(pk=chosen).first() if chosen and all(run.pk != chosen for run in newest) else None
    return [found, *newest] if found else newest


def _added(membership: Membership, form: RepeatForm) -> bool:
    """Whether the run is repeated now; else the form has its problems."""
    number = whole_number(form.run, 18)
    if not number:
        form.problems = {"run": "Choose a run."}
        return False
    try:
        run, asked = access.run_write(membership, number), form.asked()
        idempotency.sent(form, lambda: services.add(membership, run, asked, form.key or None))
    except Http404:
        form.problems = {"run": "This run is not there any more."}
    except ConfigInvalid as error:
        form.problems = {"run": "; ".join(f"{each.path}: {each.message}" for each in error.problems)}
    except Problem as error:
        form.problems = dict(error.fields) or {"run": error.message}
    return not form.problems


@member(access.WRITER)
@require_POST
def repeat_act(request: HttpRequest, repeat_id: int) -> HttpResponseBase:
    """Pauses or resumes; a second press changes nothing."""
    membership = require(request)
    does = services.pause if request.POST.get("action") == "pause" else services.resume
    does(membership, queries.repeat_write(membership, repeat_id))
    return redirect("repeats")


@member(access.WRITER)
@require_POST
def repeat_remove(request: HttpRequest, repeat_id: int) -> HttpResponseBase:
    membership = require(request)
    row = queries.repeat_write(membership, repeat_id)
    title, text = f"Stop repeating {row.run}?", "The runs that it has launched stay. The list of its times is deleted."
    if asked := confirmation.question(request, title=title, text=text, yes="Stop repeating", back=reverse("repeats")):
        return asked
    services.remove(membership, row)
    messages.success(request, f"{row.run} is not repeated any more.")
    return redirect("repeats")
