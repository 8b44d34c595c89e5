"""The settings of a person: address, theme, password, browsers that are signed in."""

from typing import cast

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST
from django.views.generic import RedirectView

from webapp.core.network import mail
from webapp.core.problems import Problem

from ..addresses import services as addresses
from ..addresses.forms import AddressForm
from ..models import User
from ..sessions import queries as sessions
from ..sessions import time_outs
from ..sessions.browsers import browser_name
from . import services
from .forms import PasswordForm

MOST_SESSIONS = 50  # on the page


@sensitive_post_parameters("current", "new")
@require_http_methods(["GET", "POST"])
@reauthentication_required(enabled=lambda request: "email" in request.POST)  # type: ignore[untyped-decorator]  # allauth has no types
def profile(request: HttpRequest) -> HttpResponse:
    """Address, theme and password."""
    user = cast(User, request.user)
    if "email" in request.POST:
        return _change_address(request, user)
    form = PasswordForm(user, request.POST or None)
    if form.is_valid():
        services.set_password(user, form.cleaned_data["new"], here=request.session.session_key)
        update_session_auth_hash(request, user)  # this browser stays signed in; all others are signed out
        messages.success(request, "Password changed.")
        return redirect("profile")
    return _profile(request, form, AddressForm(initial={"email": user.email}))


def _profile(request: HttpRequest, password: PasswordForm, address: AddressForm) -> HttpResponse:
    user, here = cast(User, request.user), request.session.session_key
    allowed = time_outs.time_outs_of(user)
    context = {
        "form": password,
        "address": address,
        "themes": User.Theme.choices,
        "mails": mail.is_configured(),
        "sessions": [
            (row, browser_name(row.agent), row.session_key == here)
            for row in sessions.open_sessions(user)[:MOST_SESSIONS]
        ],
        "idle": time_outs.in_words(allowed.idle),
        "longest": time_outs.in_words(allowed.longest),
    }
    return render(request, "accounts/profile.html", context, status=422 if password.errors or address.errors else 200)


def _change_address(request: HttpRequest, user: User) -> HttpResponse:
    form = AddressForm(request.POST)
    if form.is_valid():
        try:
            addresses.change(user, form.cleaned_data["email"])
            messages.success(request, "Address changed.")
            return redirect("profile")
        except Problem as problem:
            form.add_error("email", problem.fields.get("email", problem.message))
    return _profile(request, PasswordForm(user), form)


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    try:
        services.set_theme(cast(User, request.user), request.POST.get("theme", ""))
    except Problem as problem:
        return HttpResponse(problem.message, status=problem.status, content_type="text/plain; charset=utf-8")
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204)
    return redirect("profile")


urls = [
    path("settings", RedirectView.as_view(pattern_name="profile"), name="settings"),
    path("settings/profile", profile, name="profile"),
    path("settings/theme", theme, name="theme"),
]
