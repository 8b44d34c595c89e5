"""Pages on which a person verifies their address by mail."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp.core.problems import Problem
from webapp.core.requests.limits import TooMany, seconds_to_wait

from ..models import User
from . import services

CHECKS_PER_MINUTE = 3  # mails to an address that somebody typed


@require_POST
def address_check(request: HttpRequest) -> HttpResponse:
    """Mails a link to the address of one's account."""
    try:
        if wait_s := seconds_to_wait(f"check:{request.user.pk}", CHECKS_PER_MINUTE):
            raise TooMany(wait_s)
        services.mail_check(cast(User, request.user))
        messages.success(request, f"A link was mailed to {cast(User, request.user).email}.")
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("profile")


@never_cache
@require_http_methods(["GET", "POST"])
def verify(request: HttpRequest, secret: str) -> HttpResponse:
    """GET only shows a button, because programs that preview links must not use up the link."""
    if request.method == "GET":
        return render(request, "accounts/verify.html")
    try:
        services.check(cast(User, request.user), secret)
        messages.success(request, "Your address is verified.")
    except Problem as problem:
        return render(request, "accounts/verify.html", {"problem": problem}, status=problem.status)
    return redirect("profile")


urls = [
    path("settings/address/check", address_check, name="address_check"),
    path("verify/<str:secret>", verify, name="verify"),
]
