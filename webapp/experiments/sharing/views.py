"""The pages of those who share: a link is made, seen once, listed and revoked."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.database.paging import page
from webapp.core.pages import confirmation
from webapp.core.problems import Invalid, Problem
from webapp.core.requests.numbers import whole_number
from webapp.core.requests.own_pages import own_page

from ..models import Run, ShareLink
from ..table import comparing
from ..table.compare_api import chosen
from . import access, comparison_contents, queries, services
from .forms import ShareForm
from .kinds import ListedLink

PAGE = 50
MOST_NAMED = 12  # runs and fields that the form names


@member(access.SHARER)
@never_cache
@require_http_methods(["GET", "POST"])
def share_new(request: HttpRequest) -> HttpResponseBase:
    """`?ids=` or `?q=` as the page Compare takes them, and `?baseline=`. The link is in the answer to the form and nowhere else."""
    membership = require(request)
    query, ids = request.GET.get("q"), ",".join(request.GET.getlist("ids"))
    try:
        runs = chosen(membership, ids, query)
    except Problem as problem:
        messages.info(request, f"{problem.message} {' '.join(problem.fields.values()).capitalize()}.")
        return redirect("runs")
    asked = {"ids": ids} if query is None else {"q": query}
    baseline = _one_of(runs, request.GET.get("baseline", ""))
    form = ShareForm(request.POST or None, initial={"name": f"Comparison of {len(runs)} runs"})
    context: dict[str, Any] = {"form": form, "back": f"{reverse('runs_compare')}?{urlencode(asked)}"}
    if form.is_valid():
        try:
            link, secret = services.share(membership, runs, form.cleaned_data["name"], form.days(), baseline)
        except services.NotAllowed as problem:
            form.add_error(None, problem.message)
        else:
            return render(
                request, "experiments/sharing/made.html", context | {"link": link, "url": services.address(secret)}
            )
    return render(request, "experiments/sharing/new.html", context | _about(membership, runs))


def _one_of(runs: list[Run], text: str) -> int | None:
    number = whole_number(text)
    return number if number in {run.pk for run in runs} else None


def _about(membership: Membership, runs: list[Run]) -> dict[str, Any]:
    """Shows a comparison as strangers will see it, before it is shared."""
    found = comparing.compare_runs(membership.workspace_id, runs, [], comparison_contents.value)
    paths = [row["path"] for row in found.config]
    hidden = [row["path"] for row in found.config if comparison_contents.HIDDEN in row["values"]]
    return {
        "allowed": membership.workspace.allows_share_links,
        "owns": membership.may(Role.OWNER),
        "count": len(runs),
        "names": [str(run) for run in runs[:MOST_NAMED]],
        "more_names": max(0, len(runs) - MOST_NAMED),
        "experiments": queries.experiments(runs),
        "paths": paths[:MOST_NAMED],
        "more_paths": max(0, len(paths) - MOST_NAMED),
        "hidden": hidden[:MOST_NAMED],
        "metrics": len(found.keys),
    }


@member(access.SHARER)
@never_cache
@require_GET
def share_links(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    try:
        found = page(queries.links(membership.workspace_id), request.GET.get("cursor"), PAGE)
    except Invalid:
        return redirect("share_links")
    working = set(access.working().filter(pk__in=[row.pk for row in found.items]).values_list("pk", flat=True))
    listed = queries.listed(found.items)
    rows = [(row, listed[row.pk], _standing(row, listed[row.pk], row.pk in working)) for row in found.items]
    context = {"rows": rows, "next": found.next, "here": request.get_full_path(), "owns": membership.may(Role.OWNER)}
    context["came_from"] = own_page(request, request.GET.get("from"))
    return render(request, "experiments/sharing/links.html", context)


def _standing(row: ShareLink, listed: ListedLink, works: bool) -> str:
    """The reason why it opens nothing; empty if it does."""
    return "ended" if row.over else listed.over or ("" if works else "closed")


@member(access.SHARER)
@require_POST
def share_revoke(request: HttpRequest, link_id: int) -> HttpResponseBase:
    membership = require(request)
    back = _back(request)
    link = access.link_write(membership, link_id)
    text = "People who have the link see nothing by it from then on. You cannot undo this, but you can share the same again by another link."
    title = f"Revoke the link “{link.name}”?"
    if link.withdrawn_at is None and (
        asked := confirmation.question(request, title=title, text=text, yes="Revoke", back=back)
    ):
        return asked
    services.revoke(membership, link)
    messages.success(request, f"The link “{link.name}” is revoked.")
    return redirect(back)


def _back(request: HttpRequest) -> str:
    """The page on which the button was."""
    return own_page(request, request.POST.get("next")) or reverse("share_links")
