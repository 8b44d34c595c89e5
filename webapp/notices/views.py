"""The list of notices, the button that watches something, and the settings of notices."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import member, require
from webapp.core.database.paging import page
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests.numbers import whole_number
from webapp.core.requests.own_pages import own_page

from . import access, queries, services, words
from .dispatch import READER
from .models import Mails, noun

PAGE = 100
MOST_IDS = 1_000
MOST_WATCHES = 200


@member(READER)
@never_cache
@require_GET
def notices(request: HttpRequest) -> HttpResponseBase:
    """The notices, newest first; those of the runs of one sweep share a line."""
    membership = require(request, READER)
    unread = request.GET.get("show") != "all"
    try:
        found = page(queries.notices(membership, unread=unread), request.GET.get("cursor"), PAGE, "-id")
    except Invalid:
        return redirect("notices")
    context = {
        "told": words.folded(found.items, queries.deleted_things(found.items)),
        "next": found.next,
        "only_unread": unread,
        "any_unread": any(row.read_at is None for row in found.items),
        "count": queries.unread(membership),
        "any": bool(found.items) or queries.notices(membership).exists(),
    }
    return render(request, "notices/notices.html", context)


@member(READER)
@require_POST
def read(request: HttpRequest) -> HttpResponseBase:
    """Marks the notices with `ids`, or all, as read. A script that asks wants no page."""
    membership = require(request, READER)
    ids = None
    if not request.POST.get("all"):
        ids = [
            pk for text in request.POST.get("ids", "").split(",")[:MOST_IDS] if (pk := whole_number(text)) is not None
        ]
    services.mark_read(membership, ids)
    return HttpResponse(status=204) if request.headers.get("X-Requested-With") else redirect(_back(request))


@member(READER)
@require_POST
def watch(request: HttpRequest, kind: str, subject_id: int) -> HttpResponseBase:
    """`on`: 1 or 0. HTMX gets the button as it is now."""
    membership = require(request, READER)
    subject = access.subject_read(membership, kind, subject_id)
    on = request.POST.get("on") == "1"
    try:
        services.watch(membership, subject, on)
    except Conflict as problem:
        messages.error(request, problem.message)
    if request.headers.get("HX-Request"):
        shown = {"kind": kind, "noun": noun(kind), "subject": subject, "on": on}
        return render(request, "notices/_watch.html", shown)
    return redirect(_back(request))


def _back(request: HttpRequest) -> str:
    return own_page(request, request.POST.get("next")) or "/notices"


@member(READER)
@never_cache
@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest) -> HttpResponseBase:
    membership = require(request, READER)
    if request.method == "POST":
        try:
            services.change_settings(membership, own=bool(request.POST.get("own")), mails=request.POST.get("mail"))
            messages.success(request, "Saved.")
        except Invalid as problem:
            messages.error(request, f"{problem.message} {problem.fields['mail']}.")
        return redirect("notice_settings")
    rows = list(queries.watches(membership)[: MOST_WATCHES + 1])
    watches = [(row, words.page(row.kind, row.subject_id)) for row in rows[:MOST_WATCHES]]
    context = {"settings": queries.settings(membership.user_id), "watches": watches, "most": MOST_WATCHES}
    context |= {"more": len(rows) > MOST_WATCHES, "mails": Mails.choices, "no_mail": queries.no_mail(membership.user)}
    return render(request, "notices/settings.html", context | {"letter": queries.last_letter(membership.user_id)})
