"""Pages on which people's agreement with the judge of a run is shown, and on which a reviewer matches reasons."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from webapp.accounts.access import member, require
from webapp.core.problems import Conflict, Problem

from .. import access
from ..models import Run
from . import human_grades, reason_matches


@member(access.READER)
@never_cache
@require_GET
def run_people(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A fragment: how far people agree with the run's judge, as it goes and after its end."""
    run = access.run_read(require(request), run_id)
    found = human_grades.agreement(run)
    if found is None:
        raise Http404("nobody is asked")
    return render(request, "experiments/_people.html", {"run": run, "people": found})


@member(access.READER)
@never_cache
@require_http_methods(["GET", "POST"])
def reasons(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A judgement at a time; the matcher's own findings are not shown before it is saved."""
    membership = require(request)
    run = access.run_read(membership, run_id)
    if not reason_matches.matches_reasons(run):
        raise Http404("no reasons are matched in this run")
    problem = ""
    if request.method == "POST":
        try:
            reason_matches.save(membership, run, request.POST.get("judgement", ""), request.POST.getlist("match"))
        except Conflict as conflict:
            messages.info(request, conflict.message)
        except Problem as invalid:
            problem = invalid.message
        if not problem:
            return redirect("run_reasons", run.pk)
    return render(request, "experiments/run_reasons.html", _context(run, problem), status=422 if problem else 200)


def _context(run: Run, problem: str) -> dict[str, object]:
    judgement = reason_matches.waiting(run)
    rows = (
        [] if judgement is None else [(h, text, range(len(judgement.model))) for h, text in enumerate(judgement.human)]
    )
    return {
        "run": run,
        "judgement": judgement,
        "rows": rows,
        "agreements": reason_matches.agreements(run),
        "problem": problem,
    }
