"""Pages of trials: what comes of a draft, and two versions side by side. Reading needs the role reviewer, starting one researcher."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_GET, require_http_methods

from trainer.judges.spec import KINDS
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests.numbers import whole_number

from .. import access, queries
from ..models import Judge, JudgeVersion, Trial
from . import differences, services
from .forms import ExtraForm


@member(Role.REVIEWER)
@require_GET
def trial(request: HttpRequest, trial_id: int) -> HttpResponseBase:
    """The fragment of a trial; it reloads itself while the trial is under way."""
    return fragment(request, access.trial_read(require(request), trial_id))


def fragment(request: HttpRequest, row: Trial) -> HttpResponseBase:
    return render(request, "judging/_trial.html", {"trial": row, "judge": row.judge})


@member(Role.REVIEWER)
@require_http_methods(["GET", "POST"])
def judge_compare(request: HttpRequest, judge_id: int) -> HttpResponseBase:
    """Shows how two versions differ, and what that changes on the fixed examples; a POST has both judge them."""
    membership = require(request)
    row = access.judge_read(membership, judge_id)
    asked = request.POST if request.method == "POST" else request.GET
    before, after = _version(row, asked.get("before")), _version(row, asked.get("after"))
    if before.pk == after.pk:
        return redirect("judge", row.pk)
    if request.method == "POST":
        access.may_write(membership)
        form = ExtraForm(KINDS[row.kind], request.POST)
        try:
            if not form.is_valid():
                raise Invalid(
                    "The comparison cannot be run.", {name: str(each[0]) for name, each in form.errors.items()}
                )
            services.start_comparison(membership, row, before=before, after=after, extra=form.extra())
        except (Invalid, Conflict) as problem:
            messages.error(request, " ".join([problem.message, *problem.fields.values()]))
        return redirect(f"{request.path}?before={before.number}&after={after.number}")
    latest = row.trials.filter(before=before, after=after).select_related("before", "after").order_by("-id").first()
    context = {
        "judge": row,
        "before": before,
        "after": after,
        "versions": queries.versions(row),
        "templates": differences.templates(before, after),
        "fields": differences.fields(before, after),
        "trial": latest,
        "extra_form": ExtraForm(KINDS[row.kind], initial=ExtraForm.initial_from(latest.extra if latest else {})),
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "judging/compare.html", context)


def _version(row: Judge, number: str | None) -> JudgeVersion:
    wanted = whole_number(number or "", 9)
    found = None if wanted is None else queries.versions(row).filter(number=wanted).first()
    if found is None:
        raise Http404("no such version")
    return found


urls = [
    path("judges/trials/<int:trial_id>", trial, name="judge_trial"),
    path("judges/<int:judge_id>/compare", judge_compare, name="judge_compare"),
]
