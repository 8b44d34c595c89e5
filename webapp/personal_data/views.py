"""One's own data; and, for administrators, the data of a person who cannot sign in, and how long unused accounts stay."""

from typing import cast

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import administrators
from webapp.accounts.models import User
from webapp.core.network.addresses import public_url
from webapp.core.pages import confirmation
from webapp.core.problems import Problem
from webapp.core.storage.archive import respond

from . import access, erasing, queries, retention, services
from .forms import RetentionForm

ANNOUNCED = 50
"""Accounts that the page lists, the next ones to go first."""


@never_cache
@require_http_methods(["GET", "POST"])
def mine(request: HttpRequest) -> HttpResponse:
    """The page with the files of one's data. A POST has another file written."""
    user = cast(User, request.user)
    if request.method == "POST":
        try:
            services.ask(user)
        except Problem as problem:
            messages.error(request, problem.message)
        return redirect("personal_data")
    context: dict[str, object] = {"exports": queries.own_exports(user), "own": True}
    if request.headers.get("HX-Request"):
        return render(request, "personal_data/_exports.html", context)
    return render(request, "personal_data/mine.html", context | {"days": services.KEPT.days, **_fate(user)})


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
    """The page of an administrator's link. GET only shows a button, because programs that preview links must not fetch somebody's data."""
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
    """The page for a person who cannot sign in. A POST has the file written and shows once the link to pass on."""
    person = get_object_or_404(User, pk=user_id, erased=False)
    link = ""
    if request.method == "POST":
        try:
            _, secret = services.ask_for(cast(User, request.user), person)
            link = f"{public_url()}/personal-data/{secret}"
        except Problem as problem:
            messages.error(request, problem.message)
    context = {"person": person, "link": link, "exports": queries.of_person(person)}
    context |= {"days": services.KEPT.days, **_fate(person)}
    return render(request, "personal_data/of_person.html", context)


def _fate(person: User) -> dict[str, object]:
    """The rows that an erasure would delete and keep, and the obstacles to it."""
    return {"fate": queries.fate(person), "hindrances": erasing.erasure_obstacles(person)}


@never_cache
@require_http_methods(["GET", "POST"])
def erase_mine(request: HttpRequest) -> HttpResponse:
    """Closes one's own account for good: after a question, and after the password or second factor once more."""
    user = cast(User, request.user)
    if request.method == "GET":  # somebody who thought better of it on the page that asks for the password
        return redirect("personal_data")
    title, text = "Erase your account for good?", _said(queries.fate(user), "You")
    if asked := confirmation.question(
        request, title=title, text=text, yes="Erase my account", back=reverse("personal_data")
    ):
        return asked
    answer: HttpResponse = _erase_mine(request)
    return answer


@reauthentication_required  # type: ignore[untyped-decorator]  # allauth has no types
def _erase_mine(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    try:
        erasing.erase(user, user)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("personal_data")
    logout(request)
    return render(request, "personal_data/erased.html")


@administrators
@never_cache
@require_POST
def erase_person(request: HttpRequest, user_id: int) -> HttpResponse:
    """Erasure by an administrator, for somebody who has asked for it."""
    person = get_object_or_404(User, pk=user_id, erased=False)
    back = reverse("person_data", args=[user_id])
    title, text = f"Erase the account of {person} for good?", _said(queries.fate(person), str(person))
    if asked := confirmation.question(request, title=title, text=text, yes="Erase the account", back=back):
        return asked
    try:
        erasing.erase(person, cast(User, request.user))
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect(back)
    messages.success(request, "The account is erased.")
    return redirect("installation_people")


@administrators
@never_cache
@require_http_methods(["GET", "POST"])
def retention_page(request: HttpRequest) -> HttpResponse:
    """After how long an account that nobody uses is erased, and which ones are announced."""
    form = RetentionForm(request.POST) if request.method == "POST" else RetentionForm.showing(retention.days())
    if request.method == "POST" and form.is_valid():
        retention.change(cast(User, request.user), form.cleaned_data["unused_days"])
        messages.success(request, "The retention is changed.")
        return redirect("installation_retention")
    listed, count = retention.announced(ANNOUNCED)
    context = {"form": form, "listed": listed, "count": count, "days": retention.days()}
    return render(request, "installation/retention.html", context, status=422 if form.errors else 200)


def _said(fate: queries.ErasureFate, who: str) -> str:
    return (
        f"{who} cannot sign in again, and nobody can restore the account. {_listed(fate.deleted)} go with name, address and "
        f"password. {_listed(fate.kept)} stay under a pseudonym. The audit log keeps its entries and no longer says who did it."
    )


def _listed(counts: list[str]) -> str:
    return ", ".join(counts) or "No other rows"
