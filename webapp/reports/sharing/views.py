"""The page where a report is shared, and its links show a newer version."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.problems import Problem
from webapp.experiments.models import Run
from webapp.experiments.sharing import services as links
from webapp.experiments.sharing.forms import ShareForm
from webapp.experiments.sharing.models import MAX_NAME

from .. import access
from .. import queries as reports
from ..models import ReportPageVersion
from ..tables import PEOPLE
from . import queries, services
from .access import shared_write

MOST_NAMED = 12


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def report_share(request: HttpRequest, report_id: int) -> HttpResponseBase:
    """The link is in the answer to the form and nowhere else."""
    membership = require(request)
    row = access.report_write(membership, report_id)
    form = ShareForm(request.POST or None, initial={"name": row.title[:MAX_NAME]})
    if form.is_valid():
        try:
            link, secret = services.share(membership, row, form.cleaned_data["name"], form.days())
        except Problem as problem:
            form.add_error(None, " ".join([problem.message, *problem.fields.values()]))
        else:
            return render(
                request, "reports/share_made.html", {"report": row, "link": link, "url": links.address(secret)}
            )
    version = reports.newest(row)
    context = {
        "report": row,
        "version": version,
        "form": form,
        "back": reverse("report", args=[row.pk]),
        "shared": list(queries.shared(row)),
    }
    return render(request, "reports/share.html", context | _about(membership, version))


def _about(membership: Membership, version: ReportPageVersion) -> dict[str, Any]:
    """Shows a report as strangers will see it, before it is shared."""
    found = queries.contents(membership, version)
    runs = Run.objects.with_names().filter(pk__in=found.runs[:MOST_NAMED])
    heads = [label for block in found.of("runs") for label, _ in block.facts["heads"]]
    return {
        "allowed": membership.workspace.allows_share_links,
        "owns": membership.may(Role.OWNER),
        "runs": len(found.runs),
        "names": [str(run) for run in runs],
        "more_names": max(0, len(found.runs) - MOST_NAMED),
        "metrics": list(dict.fromkeys(each["key"] for block in found.of("chart") for each in block.facts["metrics"])),
        "columns": list(dict.fromkeys(heads)),
        "names_people": any(
            name in block.block.given.get("columns", ()) for block in found.of("runs") for name in PEOPLE
        ),
        "rollouts": [(block.facts["run"], block.facts["row"].step) for block in found.of("rollout")],
        "missing": sum(bool(block.why) for block in found.blocks),
    }


@member(access.WRITER)
@require_POST
def report_share_newest(request: HttpRequest, report_id: int, link_id: int) -> HttpResponseBase:
    membership = require(request)
    row = shared_write(membership, report_id, link_id)
    try:
        version = services.show_newest(membership, row)
    except Problem as problem:
        messages.error(request, " ".join([problem.message, *problem.fields.values()]))
    else:
        messages.success(request, f"The link shows version {version.number} now.")
    return redirect("report_share", report_id)
