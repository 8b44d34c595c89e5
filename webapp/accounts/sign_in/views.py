"""Pages to sign in by a password or by a link that works once, and to sign out."""

from django.conf import settings
from django.contrib.auth import authenticate, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from webapp.core.requests.limits import seconds_to_wait
from webapp.core.requests.own_pages import own_page

from ..models import User
from ..sessions.services import record_session
from . import services
from .forms import SignInForm
from .last_step import let_in

SIGN_INS_PER_MINUTE = 60  # from one network address, for any accounts: stops one password tried on all


def _next(request: HttpRequest) -> str:
    """The address to go to after signing in, if it is on this site."""
    return own_page(request, request.POST.get("next") or request.GET.get("next")) or settings.LOGIN_REDIRECT_URL


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.method == "GET" and request.user.is_authenticated:
        return redirect(_next(request))
    form = SignInForm(request.POST or None)
    if request.method == "POST" and seconds_to_wait(f"sign-in:{request.META.get('REMOTE_ADDR')}", SIGN_INS_PER_MINUTE):
        return _not_now(request, "Too many people sign in from this address at the same time. Try again in a minute.")
    if form.is_valid():
        email = form.cleaned_data["email"].strip().lower()
        user = _whose(request, email, form.cleaned_data["password"])
        if user is not None:
            return let_in(request, user, "password", _next(request))
        form.add_error(None, "The email address or the password is wrong.")
    return render(
        request,
        "accounts/sign_in.html",
        {"form": form, "next": _next(request), "nobody": not User.objects.exists()},
        status=422 if form.errors else 200,
    )


def _whose(request: HttpRequest, email: str, password: str) -> User | None:
    """The user of this password as it was typed, or without the spaces at its ends: those were cut off before 23 November 2026. Each try
    counts as an attempt."""
    tried = dict.fromkeys(each for each in (password, password.strip()) if each)
    return next(filter(None, (authenticate(request, email=email, password=each) for each in tried)), None)


def locked_out(request: HttpRequest, credentials: dict[str, str], *args: object) -> HttpResponse:
    """The page that axes shows after too many failures; the wait is AXES_COOLOFF_TIME."""
    return _not_now(request, f"Too many attempts. Try again in {round(settings.AXES_COOLOFF_TIME * 60)} minutes.")


def _not_now(request: HttpRequest, why: str) -> HttpResponse:
    return render(
        request, "accounts/sign_in.html", {"form": SignInForm(), "next": _next(request), "locked": why}, status=429
    )


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in_link(request: HttpRequest, secret: str) -> HttpResponse:
    """GET only shows a button (a script presses it), because programs that preview links must not use up the link."""
    if request.method == "GET":
        return render(request, "accounts/link.html", {"secret": secret})
    user = services.claim_sign_in_link(secret)
    if user is None:
        return render(request, "accounts/link.html", {"spent": True}, status=410)
    return let_in(request, user, "link", settings.LOGIN_REDIRECT_URL)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        record_session(request.user, "session.ended")
    logout(request)
    return redirect(settings.LOGIN_URL)


urls = [
    path("sign-in", sign_in, name="sign_in"),
    path("sign-in/link/<str:secret>", sign_in_link, name="sign_in_link"),
    path("sign-out", sign_out, name="sign_out"),
]
