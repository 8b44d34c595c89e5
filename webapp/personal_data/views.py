"""One's own data; and, for administrators, the data of a person who cannot sign in."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from webapp.accounts.access import administrators
from webapp.accounts.models import User
from webapp.core.addresses import public_url
from webapp.core.archive import respond
from webapp.core.problems import Problem

from . import access, queries, services


@never_cache
@require_http_methods(["GET", "POST"])
def mine(request: HttpRequest) -> HttpResponse:
    """The files with one's data; a POST has another one written."""
    user = cast(User, request.user)
    if request.method == "POST":
        try:
            services.ask(user)
        except Problem as problem:
            messages.error(request, problem.message)
        return redirect("personal_data")
    context = {"exports": queries.mine(user), "days": services.KEPT.days}
    page = "personal_data/_exports.html" if request.headers.get("HX-Request") else "personal_data/mine.html"
    return render(request, page, context)


@never_cache
@require_GET
def download(request: HttpRequest, export_id: int) -> HttpResponseBase:
    row = access.export(cast(User, request.user), export_id)
    try:
        return respond(request, services.fetch(row))
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("personal_data")


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
def by_link(request: HttpRequest, secret: str) -> HttpResponseBase:
    """GET only shows a button: programs that preview links must not fetch somebody's data."""
    row = services.by_link(secret)
    if row is None:
        return render(request, "personal_data/link.html", {"ended": True}, status=410)
    if request.method == "GET" or not row.ready:
        return render(request, "personal_data/link.html", {"export": row})
    try:
        return respond(request, services.fetch(row))
    except Problem as problem:
        return render(request, "personal_data/link.html", {"ended": True}, status=problem.status)


@administrators
@never_cache
@require_http_methods(["GET", "POST"])
def of_person(request: HttpRequest, user_id: int) -> HttpResponse:
    """For somebody who cannot sign in: a POST has the file written and shows the link to pass on, once."""
    person = get_object_or_404(User, pk=user_id)
    link = ""
    if request.method == "POST":
        try:
            _, secret = services.ask_for(cast(User, request.user), person)
            link = f"{public_url()}/personal-data/{secret}"
        except Problem as problem:
            messages.error(request, problem.message)
    context = {"person": person, "link": link, "exports": queries.of_person(person), "days": services.KEPT.days}
    return render(request, "personal_data/of_person.html", context)
